"""The random numbers of the authors' own runs.

Their code is not published, but the rows of their clients show which generator they used: it is
Python's, seeded with 11 plus the client's number, and a round draws

    the transfer's coefficient    0.5 + random()
    whether its update is lost    random() < P
    if so, the hang               3 · random() of the round's own length

With this, all 1,253,803 rows of 450 published runs (three tasks, five rules, ten P) are lost or not
lost as here, without one exception. So every rule and every run met the same hangs, which is
fair to the rules; but for each P there is only one draw of them.
"""

from collections.abc import Sequence
from random import Random

from asyncfeded.simulation.suspension import LONGEST_HANG, RecordedHangs

FIRST_SEED = 11
MOST_ROUNDS = 20_000
"""More rounds than any client can have in 300 s: the shortest take 0.018 s at least."""


def authors_hangs(
    client_ids: Sequence[str], suspension: float, rounds: int = MOST_ROUNDS
) -> RecordedHangs:
    """The lost rounds of the authors' clients at this P, in the order of their numbers."""
    hangs: dict[tuple[str, int], float] = {}
    for number, client_id in enumerate(client_ids):
        draw = Random(FIRST_SEED + number)  # noqa: S311
        for round_number in range(rounds):
            draw.random()  # the transfer's coefficient
            if draw.random() < suspension:
                hangs[client_id, round_number] = LONGEST_HANG * draw.random()
    return hangs
