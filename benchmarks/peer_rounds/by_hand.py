"""The scripted case worked without any tool, by each paper's formula or by another.

The case is in `scripted_case`: a round from the version x brings the model y = (x + c) / 2. What
arrives is mixed into the server's version by a formula; the client goes on from what this makes.
Fractions stay exact; only FedBuff's weights, powers of −1/2, are rounded.

`PAPER` has the formulas as published; a formula with another name says what it does differently.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt

from peer_rounds.simulated import Rule

Number = Fraction | float

UNITS = (3, 4, 5)
TARGETS = (Fraction(8), Fraction(16), Fraction(-8))
CLIENTS = len(UNITS)
ALPHA = Fraction(1, 2)
BUFFER = 2


@dataclass(frozen=True)
class Round:
    """A client's round: the version that it began from, that version's number, and its model."""

    base: Number
    number: int
    model: Number


@dataclass
class State:
    """The server: its version, how many steps led to it, and FedBuff's buffer."""

    version: Number = Fraction(0)
    number: int = 0
    buffer: list[Number] = field(default_factory=list)


Mix = Callable[[State, Sequence[Round]], bool]
"""Take the rounds that arrive together into the state; say whether there is a new version."""


def constant(_: int) -> Number:
    return Fraction(1)


def polynomial(lag: int) -> Number:
    """(lag + 1)^(−a) with a = 1."""
    return Fraction(1, lag + 1)


def hinge(lag: int) -> Number:
    """1 up to b, then 1 / (a · (lag − b) + 1), with a = 2 and b = 1."""
    return Fraction(1) if lag <= 1 else Fraction(1, 2 * (lag - 1) + 1)


def hinge_without_one(lag: int) -> Number:
    """1 up to b, then 1 / (a · (lag − b))."""
    return Fraction(1) if lag <= 1 else Fraction(1, 2 * (lag - 1))


def square_root(lag: int) -> Number:
    """FedBuff's weight, (1 + lag)^(−1/2)."""
    return 1 / sqrt(1 + lag)


def mixing(weight: Callable[[int], Number], share: Fraction = Fraction(1)) -> Mix:
    """FedAsync: x ← (1 − α_t) · x + α_t · y, α_t = α · weight(lag); of several, their mean."""

    def mix(state: State, rounds: Sequence[Round]) -> bool:
        mixed = []
        for each in rounds:
            alpha = ALPHA * share * weight(state.number - each.number)
            mixed.append((1 - alpha) * state.version + alpha * each.model)
        state.version = sum(mixed) / len(mixed)
        state.number += 1
        return True

    return mix


def buffering(contribution: Callable[[State, Round], Number], divisor: int = BUFFER) -> Mix:
    """FedBuff: for every M = 2 updates x ← x + Σ contribution / divisor."""

    def mix(state: State, rounds: Sequence[Round]) -> bool:
        state.buffer += [contribution(state, each) for each in rounds]
        if len(state.buffer) < BUFFER:
            return False
        state.version += sum(state.buffer) / divisor
        state.number += 1
        state.buffer = []
        return True

    return mix


def from_base(state: State, each: Round) -> Number:
    """s(lag) · (y − x_base), as published."""
    return square_root(state.number - each.number) * (each.model - each.base)


def from_current(state: State, each: Round) -> Number:
    """s(lag) · (y − x_now)."""
    return square_root(state.number - each.number) * (each.model - state.version)


@dataclass(frozen=True)
class Formula:
    """How versions come about; with `waits`, a client in the buffer rests until it is emptied."""

    mix: Mix
    together: bool = False
    """What arrives in one unit makes one version."""
    waits: bool = False


PAPER: Mapping[Rule, Formula] = {
    "fedasync-constant": Formula(mixing(constant)),
    "fedasync-polynomial": Formula(mixing(polynomial)),
    "fedasync-hinge": Formula(mixing(hinge)),
    "fedbuff": Formula(buffering(from_base)),
}
"""The rules as published."""

PART = Fraction(1, CLIENTS)
OTHERS: Mapping[Rule, Mapping[str, Formula]] = {
    "fedasync-constant": {
        "α is divided by the number of clients": Formula(mixing(constant, PART)),
        "arrivals of one unit are averaged": Formula(mixing(constant), together=True),
    },
    "fedasync-polynomial": {
        "α is divided by the number of clients": Formula(mixing(polynomial, PART)),
        "arrivals of one unit are averaged": Formula(mixing(polynomial), together=True),
    },
    "fedasync-hinge": {
        "α is divided by the number of clients": Formula(mixing(hinge, PART)),
        "the hinge lacks the + 1, and arrivals of one unit are averaged": Formula(
            mixing(hinge_without_one), together=True
        ),
        "the hinge lacks the + 1": Formula(mixing(hinge_without_one)),
    },
    "fedbuff": {
        "differences are taken to the server's version at the arrival, and divided by the number "
        "of clients": Formula(buffering(from_current, CLIENTS)),
        "divided by the number of clients": Formula(buffering(from_base, CLIENTS)),
        "a client whose update is in the buffer rests until the buffer is emptied; arrivals of one "
        "unit come together": Formula(buffering(from_base), together=True, waits=True),
    },
}
"""What else a tool may do, in words that follow 'Here'."""


@dataclass(frozen=True)
class Seen:
    """An arrival and the version after it."""

    units: int
    clients: tuple[int, ...]
    version: Number


def worked(formula: Formula, arrivals: int) -> list[Seen]:
    """The versions until so many updates have arrived."""
    state = State()
    rounds = {client: begun(state, client) for client in range(CLIENTS)}
    due = {client: (UNITS[client], client) for client in range(CLIENTS)}
    order = CLIENTS  # of two that are due at once, the one that began first comes first
    resting: list[int] = []
    seen: list[Seen] = []
    while sum(len(each.clients) for each in seen) < arrivals:
        now, _ = min(due.values())
        coming = sorted((when[1], client) for client, when in due.items() if when[0] == now)
        clients = [client for _, client in coming][: None if formula.together else 1]
        changed = formula.mix(state, [rounds[client] for client in clients])
        seen.append(Seen(now, tuple(clients), state.version))
        for client in clients:
            del due[client]
        resting += clients
        if formula.waits and not changed:
            continue
        for client in resting:
            rounds[client] = begun(state, client)
            due[client] = now + UNITS[client], order
            order += 1
        resting = []
    return seen


def begun(state: State, client: int) -> Round:
    """A round from the server's version: full-batch gradient descent goes half of the way."""
    return Round(state.version, state.number, (state.version + TARGETS[client]) / 2)
