"""Histories in several processes, for so long or up to so many faults."""

import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from faults.histories import HistoryError, run_until

SEEDS_OF_A_PROCESS = 2**32
"""Seeds lie this far apart, so that no process repeats the histories of another."""


def soak(
    level: str, processes: int, first_seed: int, seconds: float, events: int | None
) -> tuple[Counter[str], int]:
    """Run histories; gives the faults and the number of histories."""
    share = None if events is None else -(-events // processes)
    faults: Counter[str] = Counter()
    histories = 0
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        seeds = [first_seed + number * SEEDS_OF_A_PROCESS for number in range(processes)]
        running = [pool.submit(of_one_process, level, seed, seconds, share) for seed in seeds]
        for future in as_completed(running):
            try:
                found, number = future.result()
            except HistoryError as error:
                print(error, flush=True)  # the other processes may go on for hours
                raise
            faults += found
            histories += number
    return faults, histories


def of_one_process(
    level: str, first_seed: int, seconds: float, events: int | None
) -> tuple[Counter[str], int]:
    """Run histories one after the other."""
    end = time.monotonic() + seconds

    def is_enough(faults: Counter[str], _: int) -> bool:
        return time.monotonic() >= end if events is None else faults.total() >= events

    return run_until(level, first_seed, is_enough)
