"""Arrows on a landscape, as Figure 1 has them."""

from itertools import combinations, pairwise
from math import dist, pi

import numpy as np
import pytest
from matplotlib.figure import Figure

from asyncfeded_paper import charts, drawn_landscapes, griewank, landscapes
from asyncfeded_paper.landscapes import Arrow, Landscape

STEPS = [
    Arrow("a", (0.0, 0.0), (1.0, 0.0), "#ff0000", number=1),
    Arrow("b", (1.0, 0.0), (1.0, 0.01), "#00ff00", number=2),
    Arrow("a", (1.0, 0.01), (0.0, 0.02), "#ff0000", number=3, label="back"),
]


def landscape(*arrows: Arrow) -> Landscape:
    side = np.linspace(-1.0, 2.0, 7)
    return Landscape(side, side, np.add.outer(side**2, side**2), arrows, [])


def test_an_arrow_knows_its_length_its_angle_and_the_points_on_it() -> None:
    arrow = Arrow("a", (1.0, 1.0), (1.0, 3.0), "#ff0000")
    assert arrow.length == 2.0
    assert arrow.angle == pytest.approx(pi / 2)
    assert arrow.at(0.25) == (1.0, 1.5)


def test_numbers_stand_apart_from_each_other_and_beside_their_arrows() -> None:
    land = landscape(*STEPS)
    size = landscapes.BADGE_SHARE * land.width
    numbers = land.numbers()
    assert [arrow.number for arrow, _ in numbers] == [1, 2, 3]
    for (_, one), (_, other) in combinations(numbers, 2):
        assert dist(one, other) > size
    for arrow, at in numbers:
        assert 0.5 * size < dist(at, arrow.middle) < 1.5 * size


@pytest.mark.parametrize("example", griewank.examples(), ids=lambda example: example.rule)
def test_no_number_of_figure_1_covers_another_or_an_arrow(example: griewank.Example) -> None:
    (panel,) = griewank.chart([example]).panels
    land = panel.landscape
    assert land is not None
    size = landscapes.BADGE_SHARE * land.width
    numbers = land.numbers()
    assert [arrow.number for arrow, _ in numbers] == [1, 2, 3, 4, 5, 6, 7, 8]
    for (_, one), (_, other) in combinations(numbers, 2):
        assert dist(one, other) > size
    for _, at in numbers:
        for arrow in land.arrows:
            assert min(dist(at, arrow.at(share)) for share in np.linspace(0, 1, 50)) > 0.5 * size


def test_the_steps_of_figure_1_follow_one_another() -> None:
    for example in griewank.examples():
        (panel,) = griewank.chart([example]).panels
        assert panel.landscape is not None
        steps = [arrow for arrow in panel.landscape.arrows if not arrow.dashed]
        assert len(steps) == 8
        assert all(one.end == next_one.start for one, next_one in pairwise(steps))


def test_an_image_has_equal_axes_and_every_name_once() -> None:
    axes = Figure().add_subplot()
    drawn_landscapes.draw(landscape(*STEPS), axes)
    assert axes.get_aspect() == 1.0
    names = axes.get_legend_handles_labels()[1]
    assert names == ["a", "b", landscapes.SOLID, landscapes.DASHED]


def test_a_browser_tells_what_an_arrow_is_about() -> None:
    about = Arrow("a", (0.0, 0.0), (1.0, 1.0), "#ff0000", number=1, about="step 1, lag 4")
    panel = charts.Panel("title", "x", "y", [], landscape=landscape(about))
    drawn = charts.interactive(panel)
    assert [trace.text for trace in drawn.data if trace.name == "a"] == ["step 1, lag 4"]
    assert drawn.layout.yaxis.scaleanchor == "x"
