"""A table for a paper: LaTeX with the rules of the package booktabs."""

from collections.abc import Collection, Sequence

_ESCAPED = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "±": r"$\pm$",
        "–": "--",
    }
)


def escaped(text: str) -> str:
    """Write a text so that LaTeX shows it as it is."""
    return text.translate(_ESCAPED)


def latex_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    bold: Collection[tuple[int, int]] = (),
) -> str:
    r"""A tabular: the first column to the left, figures to the right.

    `bold` has the (row, column) of cells in bold. It needs \usepackage{booktabs}.
    """
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}",
        r"\toprule",
        _row([escaped(heading) for heading in headings]),
        r"\midrule",
    ]
    for number, row in enumerate(rows):
        cells = [escaped(cell) for cell in row]
        for column in range(len(cells)):
            if (number, column) in bold:
                cells[column] = rf"\textbf{{{cells[column]}}}"
        lines.append(_row(cells))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
