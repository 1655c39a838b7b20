"""A hundred thousand faults, and nothing that was acknowledged is lost."""

from collections import Counter

import pytest

from faults.histories import LEVELS, run_until
from faults.server_history import NETWORK_RATES
from faults.simulated_disk import RATES

PARTS = 8
FAULTS_OF_A_PART = {"journal": 8_000, "server": 5_000}
"""Together 104,000."""
OF_DISKS = {
    *RATES,
    *("write lost", "write torn", "write before an earlier one", "length lost"),
    *("creation lost", "renaming lost", "deletion lost", "bit flipped on the disk"),
}
MUST_HAPPEN = {"journal": OF_DISKS, "server": {*OF_DISKS, *NETWORK_RATES, "connections lost"}}
OFTEN, MOST_HISTORIES = 3, 100


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("level", LEVELS)
def test_no_fault_loses_doubles_or_changes_anything(level: str, part: int) -> None:
    run_until(level, part * 10_000, lambda faults, _: faults.total() >= FAULTS_OF_A_PART[level])


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_every_fault_happens_at_every_level(level: str) -> None:
    def rare(faults: Counter[str]) -> set[str]:
        return {name for name in MUST_HAPPEN[level] if faults[name] < OFTEN}

    faults, _ = run_until(
        level, 0, lambda found, number: not rare(found) or number == MOST_HISTORIES
    )
    assert not rare(faults)
    assert faults.keys() <= MUST_HAPPEN[level], "a fault that nobody expects"


@pytest.mark.parametrize("level", LEVELS)
def test_a_seed_gives_the_same_history_again(level: str) -> None:
    def of(seed: int) -> Counter[str]:
        return run_until(level, seed, lambda _, number: number == 1)[0]

    assert of(7) == of(7) != of(8)
