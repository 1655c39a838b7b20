"""Rules that look at the lag alone: delay-adaptive ASGD and Ringmaster, worked by hand."""

import pytest

from asyncfeded import Server, rules
from asyncfeded.core.errors import ClientStateError
from builders import answer, vector


def test_delay_adaptive_scales_down_what_is_later_than_the_number_at_work() -> None:
    server = Server(vector(0), rules.delay_adaptive(server_lr=0.5))
    late, fast = server.join("late"), server.join("fast")
    for _ in range(4):
        receipt = server.receive(answer(fast, [1]))
        assert receipt.learning_rate == 0.5
        assert receipt.next_task is not None
        fast = receipt.next_task
    # Two clients are at work and the late one has a lag of 4: η = 0.5 · 2/4.
    assert server.receive(answer(late, [1])).learning_rate == 0.25
    assert server.parameters.tolist() == [2.25]


def test_ringmaster_discards_an_update_whose_lag_reaches_its_bound() -> None:
    server = Server(vector(0), rules.ringmaster(server_lr=1, discard_from=2))
    first, second, third = (server.join(name) for name in "abc")
    server.receive(answer(first, [1]))
    assert server.receive(answer(second, [1])).learning_rate == 1  # a lag of 1
    receipt = server.receive(answer(third, [1]))  # a lag of 2
    assert (receipt.accepted, receipt.learning_rate, receipt.version) == (True, 0, 3)
    assert server.parameters.tolist() == [2]
    assert receipt.next_task is not None
    assert receipt.next_task.version == 3


def test_ringmaster_takes_no_statistics_from_what_it_discards() -> None:
    server = Server(vector(0, 5), rules.ringmaster(server_lr=1, discard_from=1), trained=1)
    late = server.join("late")
    fast = server.receive(answer(server.join("fast"), [1, 1])).next_task
    server.receive(answer(late, [1, 100]))
    assert fast is not None
    server.receive(answer(fast, [1, 0]))
    assert server.parameters.tolist() == [2, 6]


def test_hinge_measures_its_lag_in_versions_or_in_seconds() -> None:
    # a = 1, b = 2, α = 0.5. A lag of 1 version is below the knee; 5 seconds: s = 1/(1·(5 − 2) + 1).
    for lag_in, expected in (("versions", 0.5), ("seconds", 0.125)):
        rule = rules.fedasync(0.5, "hinge", a=1, b=2, lag_in=lag_in)  # type: ignore[arg-type]
        server = Server(vector(0), rule)
        late = server.join("late")
        server.receive(answer(server.join("fast"), [1]), held_seconds=0.5)
        assert server.receive(answer(late, [1]), held_seconds=5).learning_rate == expected


def test_hinge_in_seconds_does_not_weigh_down_up_to_the_knee() -> None:
    rule = rules.fedasync(0.5, "hinge", a=1, b=2, lag_in="seconds")
    server = Server(vector(0), rule)
    assert server.receive(answer(server.join("a"), [1]), held_seconds=2).learning_rate == 0.5


def test_a_rule_that_needs_seconds_says_so() -> None:
    server = Server(vector(0), rules.fedasync(weighting="hinge", lag_in="seconds"))
    task = server.join("a")
    with pytest.raises(ClientStateError, match="held_seconds must be given under rule"):
        server.receive(answer(task, [1]))
