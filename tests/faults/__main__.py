"""The command: python -m faults, from the folder tests."""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from secrets import randbits

from faults.histories import LEVELS, HistoryError, replay
from faults.soak import soak


def main() -> None:
    """Replay a history, or run as many as are asked for and print the totals."""
    options = parsed()
    try:
        if options.seed is not None:
            began = time.monotonic()
            report(options.level, replay(options.level, options.seed), 1, began)
            return
        first = randbits(31) if options.first_seed is None else options.first_seed
        print(f"seeds from {first} on", flush=True)
        levels = list(LEVELS) if options.level is None else [options.level]
        seconds = options.seconds / len(levels)
        events = None if options.events is None else -(-options.events // len(levels))
        for level in levels:
            began = time.monotonic()
            found = soak(level, options.processes, first, seconds, events)
            report(level, *found, began)
    except HistoryError as failure:
        raise SystemExit(str(failure)) from None


def report(level: str, faults: Counter[str], histories: int, began: float) -> None:
    """Print how often each fault happened, and how many in all."""
    for fault, number in faults.most_common():
        print(f"{number:>12,}  {fault}")
    print(
        f"{faults.total():>12,}  faults in {histories:,} histories of the {level}, "
        f"{time.monotonic() - began:.0f} s: nothing lost, doubled or changed",
        flush=True,
    )


def parsed() -> Namespace:
    """The options of the command."""
    parser = ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--level", choices=list(LEVELS), help="only this (default: all in turn)")
    parser.add_argument("--seed", type=int, help="replay this history, step by step")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--events", type=int, help="go on up to so many faults instead")
    parser.add_argument("--first-seed", type=int, help="begin here (default: anywhere)")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    if options.seed is not None and options.level is None:
        parser.error("--seed needs the --level of the history")
    return options


if __name__ == "__main__":
    main()
