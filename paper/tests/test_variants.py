from asyncfeded_paper.sweeps import SWEEPS, Ranked
from asyncfeded_paper.variants import sweep


def test_a_point_that_never_reaches_the_target_has_no_place_by_time() -> None:
    ranking = [Ranked({"mu": 0.1}, 0.9, 20.0), Ranked({"mu": 1.0}, 0.3, float("inf"))]
    section, _ = sweep(1, SWEEPS[1], {"synthetic-1-1": ranking})
    (grid,) = section.grids
    assert grid.rows == [("1", "0.1", "90.00%", "20 s", "1"), ("2", "1", "30.00%", "never", "–")]
