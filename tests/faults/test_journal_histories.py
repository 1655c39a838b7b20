"""A hundred thousand faults, and nothing that was committed is lost."""

from collections import Counter

import pytest

from faults.histories import run_until
from faults.simulated_disk import RATES

PARTS, FAULTS_OF_A_PART = 8, 13_000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_fault_loses_doubles_or_changes_what_was_committed(part: int) -> None:
    faults, _ = run_until(
        "journal", part * 10_000, lambda faults, _: faults.total() >= FAULTS_OF_A_PART
    )
    rare = {fault: number for fault, number in faults.items() if number < 10}
    assert not rare, "every fault happens often"
    assert set(RATES) < set(faults)


def test_a_seed_gives_the_same_history_again() -> None:
    def of(seed: int) -> Counter[str]:
        return run_until("journal", seed, lambda _, number: number == 3)[0]

    assert of(7) == of(7) != of(8)
