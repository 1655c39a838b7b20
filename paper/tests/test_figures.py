from asyncfeded.report import Spread
from asyncfeded_paper.figures import over_suspension
from asyncfeded_paper.plan import Plan
from asyncfeded_paper.results import CellFigures, Measured


def test_a_band_ends_where_values_do() -> None:
    cells = [
        CellFigures(
            "femnist",
            "fedavg",
            suspension,
            Measured(3, accuracy, seconds, seconds, Spread(9.0, 1.0)),
            None,
            None,
        )
        for suspension, accuracy, seconds in (
            (0.0, Spread(0.95, 0.1), Spread(30.0, 10.0)),
            (0.9, Spread(0.1, 0.25), Spread(90.0, 150.0)),
        )
    ]
    chart = over_suspension(cells, Plan(tasks=("femnist",)))
    assert chart is not None
    (accuracy,), (seconds,) = (panel.lines for panel in chart.panels)
    assert accuracy.low == [0.85, 0.0]
    assert accuracy.high == [1.0, 0.35]
    assert seconds.low == [20.0, 0.0]
    assert seconds.high == [40.0, 240.0]
