"""The contract of a rule as checks: `asyncfeded check-rule` and our own tests run them.

Each check is given a function that makes the rule and raises `AssertionError` if the rule breaks
the contract. The contract itself stands in `asyncfeded.core.rule`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from asyncfeded import randomness
from asyncfeded.core.errors import RuleError
from asyncfeded.core.messages import ClientUpdate, Receipt, Refusal, TrainTask
from asyncfeded.core.rule import AnyRule, Arrival, Rule, Work
from asyncfeded.core.server import Server
from asyncfeded.core.tree import check_tree
from asyncfeded.core.vectors import Vector, norm_and_distance
from asyncfeded.store.codec import decode, encode
from asyncfeded.store.states import server_state, tree_of

Make = Callable[[], AnyRule]
Check = Callable[[Make], None]
Script = Sequence[tuple[str, float, float, int]]
"""Who reports, the two elements of its delta, and its number of examples."""

CLIENTS = "abc"
SCRIPTS = 30
LONGEST_SCRIPT = 30
LARGEST = 3e38
"""Nearly the largest number that a float32 holds."""


def scripts() -> Iterator[Script]:
    """Scripts drawn by a fixed key: the same in every process."""
    for number in range(SCRIPTS):
        draw = randomness.generator(0, "contract", round_number=number)
        yield [
            (
                str(draw.choice(list(CLIENTS))),
                float(draw.uniform(-1e3, 1e3)),
                float(draw.uniform(0.01, 1e3)),
                int(draw.integers(1, 100)),
            )
            for _ in range(int(draw.integers(1, LONGEST_SCRIPT + 1)))
        ]


def play(
    server: Server, script: Script, tasks: dict[str, TrainTask] | None = None
) -> list[Receipt]:
    """Let three clients report in the order of the script, as far as it is their turn.

    `tasks` are those that they hold already; they are kept up to date.
    """
    if tasks is None:
        tasks = {}
    tasks |= {name: server.join(name) for name in CLIENTS if not server.takes_part(name)}
    receipts = []
    for name, first, second, examples in script:
        if name in tasks:
            receipt = server.receive(_answer(tasks.pop(name), (first, second), examples))
            tasks |= {task.client_id: task for task in receipt.tasks}
            receipts.append(receipt)
    return receipts


def returns_a_rule(make: Make) -> None:
    """The factory makes a Rule, with a name and settings that make the same rule again."""
    rule: object = make()
    _expect(isinstance(rule, Rule), f"the factory must return a Rule; it gave {rule!r}")
    _expect(bool(make().name), "a rule must have a name")


def repeats_to_the_bit(make: Make) -> None:
    """The same calls give the same bits."""
    for script in scripts():
        first, second = (Server(_vector(1, -1), make()) for _ in range(2))
        for left, right in zip(play(first, script), play(second, script), strict=True):
            _expect(left.figures == right.figures, "figures must be the same for the same calls")
        same = first.parameters.tobytes() == second.parameters.tobytes()
        _expect(same, "the model must have the same bits after the same calls")


def keeps_the_model_finite(make: Make) -> None:
    """Whatever arrives, the model stays finite, K is at least 1 and few versions are stored."""
    for script in scripts():
        server = Server(_vector(1, -1), make())
        for receipt in play(server, script):
            _expect(receipt.accepted, f"a sound update was refused: {receipt.reason}")
            _expect(all(task.epochs >= 1 for task in receipt.tasks), "K must be at least 1")
        _expect(bool(np.isfinite(server.parameters).all()), "the model must stay finite")
        _expect(server.stored_versions <= len(CLIENTS) + 1, "old versions must not be held")


def changes_nothing_it_is_given(make: Make) -> None:
    """`on_update` leaves arrays and state as they were; called again, it decides the same."""
    rule = make()
    delta, base, current = _vector(3, -4), _vector(1, 1), _vector(2, 5)
    copies = delta.copy(), base.copy(), current.copy()
    norms = norm_and_distance(delta, current, base)
    arrival = Arrival("a", delta, base, current, 2, 5, Work(10), *norms, clients=3, steps=4)
    state = rule.init(current)
    shown = repr(state)
    first, again = rule.on_update(state, arrival), rule.on_update(state, arrival)
    _expect(repr(state) == shown, "on_update must not change the state it is given")
    for array, copy in zip((delta, base, current), copies, strict=True):
        _expect(np.array_equal(array, copy), "on_update must not change the arrays it is given")
    _expect(repr(first) == repr(again), "on_update must decide the same for the same arguments")


def keeps_old_states_usable(make: Make) -> None:
    """An old state can be used again after a newer one was made from it."""
    rule = make()

    def arrival(delta: float) -> Arrival:
        return Arrival("a", _vector(delta), _vector(0), _vector(0), 0, 1, Work(10), abs(delta), 0.0)

    one = rule.on_update(rule.init(_vector(0)), arrival(1)).state
    shown = repr(one)
    later = rule.on_update(one, arrival(3)).state
    if rule.on_leave is not None:
        for state, name in ((later, "a"), (one, "a"), (one, "a stranger")):
            rule.on_leave(state, name)
    _expect(repr(one) == shown, "a state must not change once it was returned")
    repeated = [repr(rule.on_update(one, arrival(2))) for _ in range(2)]
    _expect(repeated[0] == repeated[1], "on_update must decide the same for the same arguments")


def has_a_state_of_plain_data(make: Make) -> None:
    """Every state can be saved: arrays, numbers, texts, None and mappings of these."""
    rule = make()
    for script in scripts():
        server = Server(_vector(1, -1), rule)
        play(server, script)
        server.leave("b")
        try:
            check_tree(rule.name, server.rule_state)
        except RuleError as error:
            raise AssertionError(str(error)) from None


def goes_on_from_a_saved_state(make: Make) -> None:
    """A server that is written down, read again and restored goes on with the same bits."""
    for number, script in enumerate(scripts()):
        half = len(script) // 2
        server, tasks = Server(_vector(1, -1), make()), dict[str, TrainTask]()
        play(server, script[:half], tasks)
        if number % 2:
            server.leave("b")
            tasks = {name: task for name, task in tasks.items() if name != "b"}
        content = encode(tree_of(server.state()))
        again = Server.restore(server_state(decode(content)), make())
        first = play(server, script[half:], dict(tasks))
        second = play(again, script[half:], dict(tasks))
        for left, right in zip(first, second, strict=True):
            _expect(left.figures == right.figures, "figures must be the same after a restart")
        same = server.parameters.tobytes() == again.parameters.tobytes()
        _expect(same, "the model must have the same bits after a restart")
        same = repr(server.rule_state) == repr(again.rule_state)
        _expect(same, "the rule's state must be the same after a restart")


def learns_from_a_single_client(make: Make) -> None:
    """A constant delta of a single client moves the model that way."""
    server = Server(_vector(0, 0), make())
    task = server.join("a")
    for _ in range(20):
        (task,) = server.receive(_answer(task, (1, 2))).tasks
    x, y = server.parameters.tolist()
    _expect(y >= x > 0, f"after 20 updates of (1, 2) from 0 the model is at ({x:g}, {y:g})")


def serves_a_client_that_returns(make: Make) -> None:
    """A client that leaves and joins again is served; an update of its past is refused."""
    server = Server(_vector(0, 0), make())
    a, b = server.join("a"), server.join("b")
    server.receive(_answer(a, (1, 2)))
    server.leave("a")
    server.leave("b")
    again = server.join("a")
    _expect(server.receive(_answer(again, (1, 2))).accepted, "a client that returns is refused")
    _expect(bool(np.isfinite(server.parameters).all()), "the model must stay finite")
    reason = server.receive(_answer(b, (1, 2))).reason
    _expect(reason == Refusal.UNKNOWN_CLIENT, "a client that left must be refused")


def recovers_from_huge_updates(make: Make) -> None:
    """After twenty updates of 3e38, honest updates move the model again."""
    server = Server(_vector(0, 0), make())
    hostile = server.join("hostile")
    for _ in range(20):
        (hostile,) = server.receive(_answer(hostile, (LARGEST, 1))).tasks
    server.leave("hostile")
    task = server.join("honest")
    before = server.parameters[1].item()
    accepted = 0
    for _ in range(60):
        receipt = server.receive(_answer(task, (1, 1)))
        accepted += receipt.accepted
        (task,) = receipt.tasks
    _expect(accepted >= 40, f"of 60 honest updates after huge ones only {accepted} were accepted")
    moved = server.parameters[1].item() > before
    _expect(moved, "60 honest updates after huge ones did not move the model")


def goes_back_to_the_state_before_a_refused_step(make: Make) -> None:
    """A step that is not finite is refused and leaves no trace in the rule's state."""
    tried, untried = (Server(_vector(LARGEST, 0), make()) for _ in range(2))
    task = tried.join("a")
    untried.join("a")
    receipt = tried.receive(_answer(task, (LARGEST, 1)))
    if receipt.accepted:  # kept for later, or scaled down
        return
    _expect(receipt.reason == Refusal.STEP_NOT_FINITE, f"refused as {receipt.reason}")
    _expect(repr(tried.rule_state) == repr(untried.rule_state), "the state has changed")
    _expect(np.array_equal(tried.parameters, untried.parameters), "the model has changed")


CHECKS: Mapping[str, Check] = {
    check.__name__.replace("_", " "): check
    for check in (
        returns_a_rule,
        repeats_to_the_bit,
        keeps_the_model_finite,
        changes_nothing_it_is_given,
        keeps_old_states_usable,
        has_a_state_of_plain_data,
        goes_on_from_a_saved_state,
        learns_from_a_single_client,
        serves_a_client_that_returns,
        recovers_from_huge_updates,
        goes_back_to_the_state_before_a_refused_step,
    )
}
"""Every check by name."""


def _expect(right: bool, what: str) -> None:
    if not right:
        raise AssertionError(what)


def _vector(*elements: float) -> Vector:
    return np.array(elements, dtype=np.float32)


def _answer(task: TrainTask, delta: tuple[float, float], num_examples: int = 1) -> ClientUpdate:
    return ClientUpdate(
        client_id=task.client_id,
        version=task.version,
        delta=_vector(*delta),
        num_examples=num_examples,
        epochs=task.epochs,
        round=task.round,
    )
