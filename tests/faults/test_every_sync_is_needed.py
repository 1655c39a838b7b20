"""No sync is there in vain: whichever one is left out, the histories find it."""

import sys
from pathlib import Path

import pytest

import asyncfeded.store
from faults.finding import found_by
from faults.journal_history import JournalHistory
from faults.simulated_disk import SimulatedDisk

STORE = Path(asyncfeded.store.__file__).parent
FILES = ("journal.py", "recovery.py")
SYNCS = [
    (name, number)
    for name in FILES
    for number, line in enumerate((STORE / name).read_text().splitlines(), start=1)
    if "disk.sync" in line
]


def test_all_syncs_are_in_these_files() -> None:
    callers = {path.name for path in STORE.glob("*.py") if "disk.sync" in path.read_text()}
    assert callers == set(FILES)
    assert len(SYNCS) == 7


@pytest.mark.parametrize("place", SYNCS)
def test_a_sync_left_out_is_found(place: tuple[str, int]) -> None:
    def is_left_out() -> bool:
        caller = sys._getframe(2)
        return (Path(caller.f_code.co_filename).name, caller.f_lineno) == place

    class Forgetful(SimulatedDisk):
        def sync(self, name: str) -> None:
            if not is_left_out():
                super().sync(name)

        def sync_folder(self) -> None:
            if not is_left_out():
                super().sync_folder()

    assert found_by(lambda seed: JournalHistory(seed, make_disk=Forgetful))
