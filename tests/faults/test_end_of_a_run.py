"""When a run is over its folder is emptied; a crash meanwhile leaves the saved run or nothing."""

import numpy as np

from asyncfeded import Server, rules
from asyncfeded.callbacks.checkpoint import OVER, Checkpoint
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Finished
from asyncfeded.store.journal import Journal
from faults.chance import Chance
from faults.simulated_disk import RATES, Crash, SimulatedDisk

SAVED = b"the last state"


def left_over(seed: int) -> bytes | None:
    """What the next process finds of a run that was over; None if nothing."""
    chance = Chance(seed, {fault: 2 * rate for fault, rate in RATES.items()})
    disk, token = SimulatedDisk(chance), chance.random.randbytes
    checkpoint = Checkpoint(disk.folder)
    run = Run(Server(np.zeros(1, np.float32), rules.asyncfeded()))
    chance.enabled = False
    try:
        with checkpoint.opened_on(disk, journal := Journal(disk, token), resume=False):
            for state in (b"a state", b"another", SAVED):
                journal.snapshot(state)
                journal.append(b"a signal")
                journal.commit()
            checkpoint(Finished(1.0, 1, ""), run)
            chance.enabled = True
    except Crash:
        pass
    chance.enabled = False
    disk.restart(power_lost=chance.random.random() < 0.5)
    again = Journal(disk, token)
    if again.is_new:
        return None
    content = bytes(again.read_snapshot())
    assert (content, again.number) in ((SAVED, 3), (OVER, 3))
    return content


def test_a_crash_at_the_end_of_a_run_leaves_all_that_was_saved_or_nothing() -> None:
    assert {left_over(seed) for seed in range(1000)} == {None, OVER, SAVED}
