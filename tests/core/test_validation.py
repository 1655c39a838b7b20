"""Every reason for a refusal: named, counted, and without any other effect."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from asyncfeded import ClientUpdate, Refusal, Server, TrainTask, guards, rules
from builders import answer, vector

Spoil = Callable[[ClientUpdate], ClientUpdate]

BAD_UPDATES: list[tuple[str, Refusal, Spoil]] = [
    ("a stranger", Refusal.UNKNOWN_CLIENT, lambda u: replace(u, client_id="stranger")),
    ("no name", Refusal.UNKNOWN_CLIENT, lambda u: replace(u, client_id=["a"])),  # type: ignore[arg-type]
    ("a version to come", Refusal.VERSION_NOT_HELD, lambda u: replace(u, version=99)),
    ("a version that is none", Refusal.VERSION_NOT_HELD, lambda u: replace(u, version=np.ones(3))),  # type: ignore[arg-type]
    ("a version of others", Refusal.VERSION_NOT_HELD, lambda u: replace(u, version=2, round=None)),
    ("a round to come", Refusal.VERSION_NOT_HELD, lambda u: replace(u, round=99)),
    ("a round that is none", Refusal.VERSION_NOT_HELD, lambda u: replace(u, round="x")),  # type: ignore[arg-type]
    ("float64", Refusal.WRONG_TYPE, lambda u: replace(u, delta=np.ones(2))),  # type: ignore[arg-type]
    ("masked", Refusal.WRONG_TYPE, lambda u: replace(u, delta=np.ma.masked_less(u.delta, 0))),
    ("a list", Refusal.WRONG_TYPE, lambda u: replace(u, delta=[1, 2])),  # type: ignore[arg-type]
    ("a matrix", Refusal.WRONG_TYPE, lambda u: replace(u, delta=np.ones((1, 2), np.float32))),
    ("examples as text", Refusal.WRONG_TYPE, lambda u: replace(u, num_examples="9")),  # type: ignore[arg-type]
    ("epochs as fraction", Refusal.WRONG_TYPE, lambda u: replace(u, epochs=1.5)),  # type: ignore[arg-type]
    ("too short", Refusal.WRONG_LENGTH, lambda u: replace(u, delta=vector(1))),
    ("too long", Refusal.WRONG_LENGTH, lambda u: replace(u, delta=vector(1, 2, 3))),
    ("no examples", Refusal.OUT_OF_RANGE, lambda u: replace(u, num_examples=0)),
    ("no epochs", Refusal.OUT_OF_RANGE, lambda u: replace(u, epochs=0)),
    ("huge examples", Refusal.OUT_OF_RANGE, lambda u: replace(u, num_examples=10**400)),
    ("examples past 2^53", Refusal.OUT_OF_RANGE, lambda u: replace(u, num_examples=2**53 + 1)),
    ("huge epochs", Refusal.OUT_OF_RANGE, lambda u: replace(u, epochs=10**400)),
    ("no steps", Refusal.OUT_OF_RANGE, lambda u: replace(u, steps=0)),
    ("steps as text", Refusal.WRONG_TYPE, lambda u: replace(u, steps="2")),  # type: ignore[arg-type]
    ("figures as text", Refusal.WRONG_TYPE, lambda u: replace(u, figures="loss")),  # type: ignore[arg-type]
    ("a figure as text", Refusal.WRONG_TYPE, lambda u: replace(u, figures={"loss": "1"})),  # type: ignore[dict-item]
    ("a huge figure", Refusal.WRONG_TYPE, lambda u: replace(u, figures={"loss": 10**400})),
    (
        "very many figures",
        Refusal.WRONG_TYPE,
        lambda u: replace(u, figures={str(number): 1.0 for number in range(65)}),
    ),
    ("NaN", Refusal.NOT_FINITE, lambda u: replace(u, delta=vector(np.nan, 1))),
    ("infinity", Refusal.NOT_FINITE, lambda u: replace(u, delta=vector(1, -np.inf))),
    ("zero", Refusal.ZERO_DELTA, lambda u: replace(u, delta=vector(0, -0.0))),
    ("too stale", Refusal.TOO_STALE, lambda u: replace(u, delta=vector(1e-6, 0))),
    (
        "a model that overflows",
        Refusal.STEP_NOT_FINITE,
        lambda u: replace(u, delta=vector(3e38, 0)),
    ),
]


def a_server_with_a_late_client() -> tuple[Server, TrainTask]:
    """x_1 = (3e38, 0); "b" has made x_2, "a" still trains from x_1."""
    server = Server(
        vector(3e38, 0), rules.asyncfeded(lam=5, eps=5), guards=[guards.bounded_staleness(100)]
    )
    task = server.join("a")
    server.receive(answer(server.join("b"), [0, 1]))
    return server, task


@pytest.mark.parametrize(
    ("reason", "spoil"), [row[1:] for row in BAD_UPDATES], ids=[r[0] for r in BAD_UPDATES]
)
def test_a_bad_update_is_refused_by_name_and_changes_nothing(reason: Refusal, spoil: Spoil) -> None:
    server, task = a_server_with_a_late_client()
    before = server.parameters.copy()
    bad = spoil(answer(task, [0, 1]))
    receipt = server.receive(bad)
    assert (receipt.accepted, receipt.reason) == (False, reason)
    assert server.refused == {reason: 1}
    assert server.accepted == 1
    assert server.version == receipt.version == 2
    assert np.array_equal(server.parameters, before)
    if reason != Refusal.UNKNOWN_CLIENT:
        assert receipt.next_task is not None
        assert receipt.next_task.epochs == task.epochs
        assert server.receive(answer(receipt.next_task, [0, 1])).accepted


def test_every_reason_but_the_duplicate_stands_in_the_table() -> None:
    assert {row[1] for row in BAD_UPDATES} == set(Refusal) - {Refusal.DUPLICATE}


@pytest.mark.parametrize("with_round", [True, False])
def test_a_duplicate_is_refused_and_the_client_keeps_its_new_task(with_round: bool) -> None:
    server = Server(vector(0, 0), rules.asyncfeded())
    update = answer(server.join("a"), [1, 1])
    update = update if with_round else replace(update, round=None)
    first = server.receive(update)
    again = server.receive(update)
    assert (again.accepted, again.reason) == (False, Refusal.DUPLICATE)
    assert again.next_task is first.next_task
    assert (server.version, server.accepted) == (2, 1)
    assert first.next_task is not None
    assert server.receive(answer(first.next_task, [1, 1])).accepted


def test_a_duplicate_is_known_by_its_round_when_the_version_stayed() -> None:
    # FedBuff keeps the update for later: the client's next task has the same version.
    server = Server(vector(0), rules.fedbuff(buffer_size=2))
    update = answer(server.join("a"), [1])
    server.receive(update)
    assert server.receive(update).reason == Refusal.DUPLICATE
    assert server.version == 1


def test_a_client_that_waits_for_its_round_cannot_report_again() -> None:
    server = Server(vector(0), rules.fedavg())
    update = answer(server.join("a"), [1])
    server.join("b")
    server.receive(update)
    again = server.receive(replace(update, round=None))
    assert (again.reason, again.next_task) == (Refusal.DUPLICATE, None)


def test_the_bound_on_staleness_lets_through_what_is_at_it() -> None:
    server = Server(vector(0), rules.asyncfeded(), guards=[guards.bounded_staleness(2.0)])
    a, b = server.join("a"), server.join("b")
    server.receive(answer(a, [4]))
    assert server.receive(answer(b, [2])).staleness == 2.0


def test_a_strided_delta_is_as_good_as_any() -> None:
    server = Server(vector(0, 0), rules.asyncfeded(lam=1, eps=1))
    task = server.join("a")
    update = replace(answer(task, [0, 0]), delta=vector(1, 9, 2, 9)[::2])
    assert server.receive(update).accepted
    assert server.parameters.tolist() == [1, 2]


def test_a_guard_gives_its_own_reason() -> None:
    server = Server(vector(0), rules.asyncfeded(), guards=[lambda _: Refusal.OUT_OF_RANGE])
    receipt = server.receive(answer(server.join("a"), [1]))
    assert receipt.reason == Refusal.OUT_OF_RANGE


def test_without_a_round_the_same_update_from_the_same_version_is_a_duplicate() -> None:
    server = Server(vector(0), rules.fedbuff(buffer_size=3))
    task = server.join("a")
    update = replace(answer(task, [1]), round=None)
    assert server.receive(update).accepted
    assert server.receive(update).reason == Refusal.DUPLICATE
    assert server.receive(replace(update, delta=vector(2))).accepted
    assert server.accepted == 2


def test_a_client_that_joins_again_cannot_be_answered_for_by_an_old_update() -> None:
    server = Server(vector(0), rules.asyncfeded())
    old = answer(server.join("a"), [1])
    server.receive(old)
    server.leave("a")
    task = server.join("a")
    assert task.round == 2
    assert server.receive(replace(old, version=task.version)).reason == Refusal.DUPLICATE


def test_numpy_counts_are_counts() -> None:
    server = Server(vector(0), rules.asyncfeded())
    update = answer(server.join("a"), [1])
    counts = {"epochs": np.int64(3), "num_examples": np.int32(2), "round": np.int64(0)}
    assert server.receive(replace(update, **counts)).accepted  # type: ignore[arg-type]
