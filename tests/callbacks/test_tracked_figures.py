"""Which points of a run trackers draw, and what is in them."""

import pytest

from asyncfeded import Receipt, Refusal
from asyncfeded.callbacks.figures import Figures, Point
from asyncfeded.core.errors import SettingError
from asyncfeded.runtime.events import Evaluated, Event, Received, RoundLost


def accepted(seconds: float, client: str, version: int, epochs: int, **figures: float) -> Received:
    receipt = Receipt(client, True, version, lag=2, delta_norm=0.5, figures=figures)
    return Received(seconds, 0, 1, epochs, receipt)


def refused(seconds: float, reason: Refusal, version: int) -> Received:
    return Received(seconds, 0, 1, 10, Receipt("a", False, version, reason, lag=9))


def points(*events: Event, clients: int = 50) -> list[Point]:
    figures = Figures(clients)
    return [point for event in events for point in figures.of(event)] + list(figures.rest())


def test_the_updates_between_two_evaluations_make_one_point_their_mean() -> None:
    drawn = points(
        accepted(0.5, "a", 2, epochs=10, staleness=1.0, learning_rate=0.5),
        accepted(0.7, "b", 3, epochs=20, staleness=3.0, learning_rate=0.25),
        accepted(0.9, "a", 4, epochs=12, staleness=5.0, learning_rate=0.75),
        Evaluated(0.0, 1, {"loss": 2.0}),
    )
    assert drawn[0] == Point(
        0.9,
        4,
        {
            "update/staleness": 3.0,
            "update/learning_rate": 0.5,
            "update/lag": 2.0,
            "update/delta_norm": 0.5,
            "update/epochs": 14.0,
            "update_epochs/a": 11.0,
            "update_epochs/b": 20.0,
            "run/updates": 3,
        },
    )
    assert len(drawn) == 2


def test_an_evaluation_is_a_point_at_its_own_version_with_the_seconds_of_the_run() -> None:
    assert points(Evaluated(2.5, 7, {"accuracy": 0.5, "loss": 1.0, "f1": 0.25})) == [
        Point(2.5, 7, {"test/accuracy": 0.5, "test/loss": 1.0, "test/f1": 0.25, "run/seconds": 2.5})
    ]


def test_a_point_has_only_the_updates_since_the_one_before() -> None:
    drawn = points(
        accepted(0.5, "a", 2, epochs=10, staleness=1.0),
        Evaluated(0.0, 1, {}),
        Evaluated(1.0, 2, {}),
        accepted(2.5, "a", 3, epochs=10, staleness=7.0),
    )
    assert [point.values.get("update/staleness") for point in drawn] == [1.0, None, None, 7.0]
    assert drawn[-1].values["run/updates"] == 2


def test_refused_updates_and_lost_rounds_are_counted_by_reason_from_the_beginning() -> None:
    drawn = points(
        refused(0.5, Refusal.TOO_STALE, 1),
        RoundLost(0.6, "b", 0, "hang", 1),
        Evaluated(0.0, 1, {}),
        refused(1.5, Refusal.TOO_STALE, 1),
        refused(1.6, Refusal.ZERO_DELTA, 1),
    )
    assert drawn[0] == Point(0.6, 1, {"refused/too_stale": 1, "lost_rounds/hang": 1})
    assert drawn[-1] == Point(
        1.6, 1, {"refused/too_stale": 2, "refused/zero_delta": 1, "lost_rounds/hang": 1}
    )


def test_only_the_first_clients_have_a_curve_of_their_own() -> None:
    (point,) = points(
        accepted(0.5, "a", 2, epochs=10),
        accepted(0.6, "b", 3, epochs=20),
        accepted(0.7, "a", 4, epochs=30),
        clients=1,
    )
    assert point.values["update_epochs/a"] == 20.0
    assert "update_epochs/b" not in point.values
    assert point.values["update/epochs"] == 20.0  # the mean of all


def test_no_curve_per_client_is_drawn_where_none_is_wanted() -> None:
    (point,) = points(accepted(0.5, "a", 2, epochs=10), clients=0)
    assert not any(name.startswith("update_epochs/") for name in point.values)
    with pytest.raises(SettingError, match="clients must be at least 0; given -1"):
        points(clients=-1)
