"""A figure of matplotlib's as a file, whole or not there."""

import warnings
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from asyncfeded.core.errors import FileError
from asyncfeded.files import whole_file


def write_picture(figure: Figure, path: str | Path, **options: Any) -> None:
    """Draw a figure to a file, in the format that its name ends in; without an ending, PNG."""
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".png")
    kinds = figure.canvas.get_supported_filetypes()
    kind = path.suffix[1:].lower()
    if kind not in kinds:
        raise FileError(
            f"{str(path)!r} must end in .{', .'.join(sorted(kinds))}; given {path.suffix!r}"
        )
    with whole_file(path) as unfinished, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # drawn as a box
        figure.savefig(unfinished, format=kind, **options)
