"""A contestant's side of the conversation: one line in, one line of JSON out.

    → (the contestant warms up)          {"ready": {"rate": 129.5, "note": "1 thread"}}
    go 500                               {"rounds": 500, "seconds": 3.9}
    quit, or the end of the input        (the contestant ends)

A row that this installation does not have answers {"unavailable": "why"} instead of being ready.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import TextIO

import torch

from peer_rounds.workload import CLIENTS, MODELS

Rounds = Callable[[int], int]
"""Carries out at least so many client rounds, and says how many."""

Clock = Callable[[], float]
"""Seconds since some time."""

THREAD_TRIALS = 3


def parser() -> argparse.ArgumentParser:
    """The options that every contestant has."""
    options = argparse.ArgumentParser()
    options.add_argument("--workload", choices=list(MODELS), required=True)
    return options


def claim_stdout() -> TextIO:
    """Keep the output for answers; what libraries print goes where errors go."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def unavailable(answers: TextIO, why: str) -> None:
    """Say that there is no such row."""
    print(json.dumps({"unavailable": why}), file=answers)


def whole_federated_rounds(count: int) -> int:
    """So many times must all clients train to make at least `count` client rounds."""
    return -(-count // CLIENTS)


def choose_threads(rounds: Rounds) -> str:
    """Set as many torch threads as are faster, one or two; say which."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    for trial in range(1 + THREAD_TRIALS):
        trials = {}
        for threads in rates:
            torch.set_num_threads(threads)
            trials[threads] = _rate(rounds, time.perf_counter)
        if trial == 0:  # for warming up; where cores are taken, two threads may wait very long
            fastest = max(trials.values())
            rates = {threads: [] for threads, rate in trials.items() if rate > fastest / 3}
        else:
            for threads, rate in trials.items():
                rates[threads].append(rate)
    chosen = max(rates, key=lambda threads: statistics.median(rates[threads]))
    torch.set_num_threads(chosen)
    return "1 thread" if chosen == 1 else f"{chosen} threads"


def serve(
    answers: TextIO,
    rounds: Rounds,
    note: str,
    lead_in: int = 0,
    clock: Clock = time.perf_counter,
) -> None:
    """Warm up, say so, and carry out what is asked for until the end of the input.

    Before the clock starts, `lead_in` rounds are made: of a contestant that trains ahead, some are
    there already after a pause, and would come for free.
    """
    rounds(CLIENTS)
    print(json.dumps({"ready": {"rate": _rate(rounds, clock), "note": note}}), file=answers)
    for line in sys.stdin:
        match line.split():
            case ["go", count]:
                rounds(lead_in)
                done, seconds = _timed(rounds, int(count), clock)
                print(json.dumps({"rounds": done, "seconds": seconds}), file=answers)
            case _:
                return


def _timed(rounds: Rounds, count: int, clock: Clock) -> tuple[int, float]:
    started = clock()
    done = rounds(count)
    return done, clock() - started


def _rate(rounds: Rounds, clock: Clock) -> float:
    done, seconds = _timed(rounds, CLIENTS, clock)
    return done / seconds
