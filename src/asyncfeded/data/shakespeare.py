"""Shakespeare: the next character of a speaking role, one client per role.

Sebastian Caldas et al., arXiv:1812.01097: an example is a window of 80 characters and the next
character. Neighbouring windows share 79 of 80 characters, so windows are never stored: they are
views into the role's text. There are two ways to split a role's windows:

position   The first nine tenths are for training. The last tenth, after a gap of a window's length,
           is for testing: no character of a test example was seen in training.
random     A tenth, drawn at random, is for testing, as in the paper's evaluation. Nearly every
           test window then has neighbours in training that contain its next character.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.data.federated import (
    TEST_SHARE,
    Examples,
    FederatedData,
    choose,
    held_out,
    random_sides,
    tenths,
)
from asyncfeded.data.roles import CLASSES, SHOWN, WINDOW, Codes, Role, Roles
from asyncfeded.on_demand import ClientNames
from asyncfeded.randomness import Places

MIN_EXAMPLES = 10_000
MAX_EXAMPLES = 1_000
PAPER_SIZES = (1661, 1117, 6007, 4380, 1485, 2482, 1285, 1794, 1105, 884)
"""Windows of the ten clients in the paper's evaluation: 22,200, of which 2,220 are for testing.

The proportions are estimates from the round times in the authors' published results.
"""
FEWEST_WINDOWS = round((WINDOW + 1) / TEST_SHARE)

Split = Literal["position", "random"]


def shakespeare(
    roles: Roles,
    clients: int,
    seed: int = 0,
    *,
    min_examples: int = MIN_EXAMPLES,
    max_examples: int | Sequence[int] | None = MAX_EXAMPLES,
    split: Split = "position",
    name: str = "shakespeare",
) -> FederatedData:
    """Choose roles by a seed and give each to a client.

    `max_examples` caps the windows of a role, for all clients or for each. In the split by
    position, every pass draws that many training windows anew, spread over the text: always to keep
    the same windows would save no more work, and a client would learn its few windows by heart. In
    the random split, the first windows of a role are kept.
    """
    # With fewer windows, the gap would leave nothing of the last tenth.
    minimum = max(min_examples, FEWEST_WINDOWS if split == "position" else 2)
    chosen = [roles.role(role) for role in choose("roles", roles.sizes, minimum, clients, seed)]
    caps = max_examples if isinstance(max_examples, Sequence) else [max_examples] * clients
    for cap in caps:
        if cap is not None and cap < 2:
            raise SettingError(
                f"max_examples must be at least 2, one to train and one to test; given {cap}"
            )
    parts = (_by_position if split == "position" else _at_random)(chosen, caps, seed)
    train, test, sources = {}, {}, {}
    for client, role, sides in zip(ClientNames(clients), chosen, parts, strict=True):
        train[client], test[client] = sides
        sources[client] = role.name
    return FederatedData(name, CLASSES, train, test, sources, class_names=SHOWN)


def _by_position(
    roles: Sequence[Role], caps: Sequence[int | None], seed: int
) -> list[tuple[Examples, Examples]]:
    return [_windows(role, cap, seed) for role, cap in zip(roles, caps, strict=True)]


def _windows(role: Role, cap: int | None, seed: int) -> tuple[Examples, Examples]:
    """The training and the test windows of a role, from different places of its text."""
    starts = _window_starts(role.stretches)
    cut = len(starts) - held_out(len(starts))
    train, test = starts[:cut], starts[cut + WINDOW :]
    if cap is None:
        return _examples(role.codes, train), _examples(role.codes, test)
    tests = held_out(cap)
    per_epoch = min(cap - tests, len(train))
    draw = randomness.generator(seed, "test-windows", role.name)
    return (
        replace(_examples(role.codes, train), per_epoch=per_epoch),
        _examples(role.codes, _spread(test, tests, draw)),
    )


def _at_random(
    roles: Sequence[Role], caps: Sequence[int | None], seed: int
) -> list[tuple[Examples, Examples]]:
    """The first windows of each role, always the same; a random tenth of all is to test."""
    starts = [_window_starts(role.stretches)[:cap] for role, cap in zip(roles, caps, strict=True)]
    counts = tenths([len(own) for own in starts])
    parts = []
    for role, own, tests in zip(roles, starts, counts, strict=True):
        draw = randomness.generator(seed, "test-split", role.name)
        train, test = random_sides(len(own), tests, draw)
        parts.append((_examples(role.codes, own[train]), _examples(role.codes, own[test])))
    return parts


def _window_starts(stretches: Places) -> Places:
    """Where windows begin: wherever 80 characters and one more follow in the same stretch."""
    ends = np.cumsum(stretches)
    ranges = [np.arange(end - n, end - WINDOW) for end, n in zip(ends, stretches, strict=True)]
    return np.concatenate(ranges)


def _spread(places: Places, count: int, draw: np.random.Generator) -> Places:
    """One place drawn from each of `count` equal parts."""
    if len(places) <= count:
        return places
    chosen: Places = places[randomness.one_of_each_part(len(places), count, draw)]
    return chosen


def _examples(codes: Codes, starts: Places) -> Examples:
    """Windows as views into the text if they follow one another, otherwise as a copy."""
    every = sliding_window_view(codes, WINDOW, writeable=True)
    if starts[-1] - starts[0] == len(starts) - 1:
        rows = slice(int(starts[0]), int(starts[-1]) + 1)
        return Examples(every[rows], codes[starts + WINDOW].astype(np.int64))
    return Examples(every[starts], codes[starts + WINDOW].astype(np.int64))
