"""The table of a comparison, worked by hand from made-up results."""

import csv
import json
import sys
from collections import Counter
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from scipy import stats

from asyncfeded import Comparison
from asyncfeded.core.errors import SettingError
from asyncfeded.report.paired import paired_p
from asyncfeded.report.spread import Spread
from asyncfeded.result import Result
from asyncfeded.runtime.events import Evaluated


def run(*accuracies: float, every: float = 10.0, refused: int = 0, **others: list[float]) -> Result:
    """A run that was evaluated at 0, 10, 20, … seconds, with these accuracies and other metrics."""
    curve = [
        Evaluated(
            every * place,
            1,
            {"accuracy": accuracy, **{name: values[place] for name, values in others.items()}},
        )
        for place, accuracy in enumerate(accuracies)
    ]
    return Result({}, curve=curve, updates=len(curve), refused=Counter(stale=refused))


def compared(target: float | None = None, **runs: list[Result]) -> Comparison:
    comparison = Comparison(target=target)
    for rule, results in runs.items():
        for seed, result in enumerate(results):
            comparison.add(rule, seed, result)
    return comparison


@pytest.fixture
def three_seeds() -> Comparison:
    return compared(
        ours=[run(0.1, 0.8), run(0.1, 0.9), run(0.1, 0.5, 1.0)],
        theirs=[run(0.1, 0.5), run(0.6, 0.7), run(0.1, 0.6)],
        target=0.7,
    )


def test_figures_are_means_over_seeds_with_the_deviation_of_a_sample(
    three_seeds: Comparison,
) -> None:
    ours, theirs = three_seeds.table()
    # Maxima 0.8, 0.9, 1.0: mean 0.9, squares 0.01 + 0 + 0.01 over n − 1 = 2.
    assert (ours.best.mean, ours.best.sd) == pytest.approx((0.9, 0.1))
    # 90 % of 0.8, 0.9 and 1.0 are first reached at 10, 10 and 20 s: sd² = (2·(10/3)² + (20/3)²)/2.
    assert ours.t90_seconds.mean == pytest.approx(40 / 3)
    assert ours.t90_seconds.sd == pytest.approx(sqrt(100 / 3))
    # 90 % of 0.5, 0.7 and 0.6 at 10, 10 and 10: at 0 s the second had 0.6 < 0.63.
    assert theirs.t90_seconds == Spread(10.0, 0.0)
    assert (ours.is_best, theirs.is_best) == (True, False)


def test_the_time_to_a_target_says_who_never_came_to_it(three_seeds: Comparison) -> None:
    # 0.7: ours at 10, 10 and 20 s; theirs never, at 10 s, never.
    ours, theirs = three_seeds.table()
    assert ours.reached == 3
    assert ours.target_seconds.mean == pytest.approx(40 / 3)
    assert (theirs.reached, theirs.target_seconds) == (1, Spread(10.0, 0.0))
    texts = three_seeds.texts()
    column = texts.headings.index("70 % after")
    assert [row[column] for row in texts.rows] == ["13 ± 6 s", "10 s, 1 of 3"]
    nobody = compared(ours=[run(0.1)], target=0.5).texts()
    assert nobody.rows[0][nobody.headings.index("50 % after")] == "never"


def test_rules_are_tested_against_the_best_by_seed(three_seeds: Comparison) -> None:
    # Differences −0.3, −0.2, −0.4: mean −0.3, sd 0.1, t = −0.3 / (0.1 / √3) = −5.196.
    # For 2 degrees of freedom P(T < t) = (1 + t / √(2 + t²)) / 2, with t² = 27: p = 1 − √(27/29).
    ours, theirs = three_seeds.table()
    assert ours.p_value is None
    assert theirs.p_value == pytest.approx(1 - sqrt(27 / 29))
    assert theirs.paired_seeds == 3
    texts = three_seeds.texts()
    column = texts.headings.index("p vs. best")
    assert [row[column] for row in texts.rows] == ["best", "0.035"]


def test_the_test_is_the_paired_t_test_of_scipy() -> None:
    draw = np.random.default_rng(0)
    first, second = draw.normal(0.8, 0.1, 6), draw.normal(0.7, 0.1, 6)
    expected = stats.ttest_rel(first, second).pvalue
    assert paired_p(list(zip(first, second, strict=True))) == pytest.approx(expected)
    assert paired_p([(0.5, 0.5)] * 3) == 1.0
    assert paired_p([(0.75, 0.5)] * 3) == 0.0


def test_only_seeds_that_both_rules_have_are_pairs() -> None:
    comparison = compared(ours=[run(0.9)] * 4, theirs=[run(0.5)] * 2)
    theirs = comparison.table()[1]
    assert (theirs.seeds, theirs.paired_seeds, theirs.p_value) == (2, 2, None)
    texts = comparison.texts()
    assert texts.rows[1][texts.headings.index("p vs. best")] == "n too small"


def test_a_metric_that_is_to_be_low_has_a_minimum_and_no_share_of_a_maximum() -> None:
    comparison = compared(
        ours=[run(0.1, 0.2, loss=[2.0, 1.0])], theirs=[run(0.1, 0.9, loss=[2.0, 1.5])]
    )
    by_loss = comparison.by("loss", target=1.5)
    ours, theirs = by_loss.table()
    assert (ours.best.mean, ours.is_best, theirs.is_best) == (1.0, True, False)
    assert (ours.reached, theirs.reached) == (1, 1)
    headings = by_loss.texts().headings
    assert headings == ["rule", "min loss", "loss 1.5 after", "p vs. best", "updates"]
    assert by_loss.by("loss", goal="max").texts().headings[2] == "90 % of its own maximum"
    with pytest.raises(SettingError, match="measured, accuracy, loss; given 'f2'"):
        comparison.by("f2")


def test_a_task_without_accuracy_is_compared_by_loss() -> None:
    result = Result({}, curve=[Evaluated(0.0, 1, {"loss": 3.0})])
    comparison = compared(ours=[result])
    assert comparison.texts().headings[1] == "min loss"
    assert comparison.table()[0].best.mean == 3.0


def test_a_value_that_is_no_number_is_never_the_best() -> None:
    ours = compared(ours=[run(0.5, float("nan"), 0.4)]).table()[0]
    assert (ours.best.mean, ours.t90_seconds.mean) == (0.5, 0.0)
    nothing = compared(ours=[Result({})], theirs=[run(0.5)])
    assert [row.is_best for row in nothing.table()] == [False, True]
    assert nothing.texts().rows[0] == ["ours", "–", "–", "–", "0"]


def test_the_readable_table(three_seeds: Comparison) -> None:
    lines = repr(three_seeds).splitlines()
    assert lines[0] == "2 rules, 3 seeds: 0, 1, 2"
    assert lines[1].split("  ")[1:2] == ["rule"]
    assert "90 % of its own maximum" in lines[1]
    assert "ours     90.00% ± 10.00%" in lines[3]
    assert str(three_seeds) == repr(three_seeds)
    assert repr(compared(a=[run(0.5)])).startswith("1 rule, 1 seed: 0\n")
    assert repr(Comparison()) == "Comparison of no runs"


def test_latex_is_escaped_and_has_the_best_in_bold() -> None:
    comparison = compared(target=0.7)
    for seed in range(3):
        comparison.add("a_b & c", seed, run(0.1, 0.75))
        comparison.add("worse", seed, run(0.1, 0.5))
    lines = comparison.to_latex().splitlines()
    assert lines == [
        r"\begin{tabular}{lrrrrr}",
        r"\toprule",
        r"rule & max accuracy & 90 \% of its own maximum & 70 \% after & p vs. best & updates \\",
        r"\midrule",
        r"a\_b \& c & \textbf{75.00\% $\pm$ 0.00\%} & 10 $\pm$ 0 s & \textbf{10 $\pm$ 0 s} & best"
        r" & 2 $\pm$ 0 \\",
        r"worse & 50.00\% $\pm$ 0.00\% & 10 $\pm$ 0 s & never & $<$ 0.001 & 2 $\pm$ 0 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_equally_good_rules_are_equally_bold(tmp_path: Path) -> None:
    text = compared(a=[run(0.5)], b=[run(0.5)]).to_latex(tmp_path / "table.tex")
    assert text.count(r"\textbf{50.00\%}") == 2
    assert (tmp_path / "table.tex").read_text() == text


def test_csv_and_pandas_have_a_column_for_every_figure(
    three_seeds: Comparison, tmp_path: Path
) -> None:
    three_seeds.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        ours, theirs = csv.DictReader(file)
    assert float(ours["max_accuracy_mean"]) == pytest.approx(0.9)
    assert (theirs["target"], theirs["target_reached"]) == ("0.7", "1")
    assert ours["p_value"] == ""
    assert float(theirs["p_value"]) == pytest.approx(1 - sqrt(27 / 29))
    pytest.importorskip("pandas")
    frame = three_seeds.to_pandas()
    assert list(frame.columns) == list(ours)
    assert frame["rule"].tolist() == ["ours", "theirs"]


def test_without_pandas_one_line_says_so(
    three_seeds: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingError, match="pandas is not installed, which to_pandas needs: pip"):
        three_seeds.to_pandas()


def test_the_plot_has_a_band_over_seeds_up_to_the_first_that_was_stopped(
    three_seeds: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, values = three_seeds.curves()
    assert seconds == [0.0, 10.0, 20.0]
    assert np.isnan(values["ours"][:2, 2]).all()
    assert values["ours"][2].tolist() == [0.1, 0.5, 1.0]
    lines = {}
    draw = Axes.plot

    def note(self: Axes, x: Any, y: Any, **options: Any) -> None:
        lines[options["label"]] = y.tolist()
        draw(self, x, y, **options)

    monkeypatch.setattr(Axes, "plot", note)
    three_seeds.plot(tmp_path / "rules.png")
    assert lines["ours"][:2] == pytest.approx([0.1, (0.8 + 0.9 + 0.5) / 3])
    assert np.isnan(lines["ours"][2])
    assert (tmp_path / "rules.png").stat().st_size > 5_000


def test_a_block_that_raises_leaves_the_files_of_the_runs_that_were_made(tmp_path: Path) -> None:
    comparison = Comparison()

    def interrupted() -> None:
        with comparison.written_to(tmp_path, "title"):
            comparison.add("ours", 0, run(0.1, 0.5))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["finished"], len(summary["runs"])) == (False, 1)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("summary.json", "compare.csv", "compare.png"),
    }


def test_refusals_are_counted_by_rule() -> None:
    comparison = compared(
        ours=[run(0.5, refused=1), run(0.5)],
        theirs=[run(0.5, refused=1), run(0.5, refused=2)],
        others=[run(0.5)],
    )
    assert comparison.refusals() == [
        "ours: 1 update was refused",
        "theirs: 3 updates were refused",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": 80}, "target must be above 0 and at most 1 for accuracy; given 80: name "),
        ({"target": True}, "target must be a number; given True"),
        ({"metric": "f1", "target": float("inf")}, "target must be finite; given inf"),
        ({"goal": "best"}, "goal must be 'max', 'min' or none; given 'best'"),
    ],
)
def test_what_cannot_be_compared_by_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Comparison(**given)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
