"""A hundred thousand faults, and nothing that was acknowledged is lost."""

from collections import Counter

import pytest

from faults.histories import LEVELS, run_until
from faults.server_history import NETWORK_RATES
from faults.simulated_disk import RATES

PARTS = 8
FAULTS_OF_A_PART = {"journal": 8_000, "server": 5_000}
"""Together 104,000."""
MUST_HAPPEN = {"journal": RATES.keys(), "server": NETWORK_RATES.keys()}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("level", LEVELS)
def test_no_fault_loses_doubles_or_changes_anything(level: str, part: int) -> None:
    faults, _ = run_until(
        level, part * 10_000, lambda faults, _: faults.total() >= FAULTS_OF_A_PART[level]
    )
    rare = {name: faults[name] for name in MUST_HAPPEN[level] if faults[name] < 3}
    assert not rare, "every fault happens often"


@pytest.mark.parametrize("level", LEVELS)
def test_a_seed_gives_the_same_history_again(level: str) -> None:
    def of(seed: int) -> Counter[str]:
        return run_until(level, seed, lambda _, number: number == 1)[0]

    assert of(7) == of(7) != of(8)
