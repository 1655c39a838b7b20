"""The command: python -m faults, from the folder tests."""

import time
from argparse import ArgumentParser, Namespace
from secrets import randbits

from faults.histories import LEVELS, HistoryError, replay
from faults.soak import soak


def main() -> None:
    """Replay a history, or run as many as are asked for and print the totals."""
    options = parsed()
    began = time.monotonic()
    try:
        if options.seed is not None:
            faults, histories = replay(options.level, options.seed), 1
        else:
            first = randbits(31) if options.first_seed is None else options.first_seed
            print(f"seeds from {first} on", flush=True)
            faults, histories = soak(
                options.level, options.processes, first, options.seconds, options.events
            )
    except HistoryError as failure:
        raise SystemExit(str(failure)) from None
    seconds = time.monotonic() - began
    for fault, number in faults.most_common():
        print(f"{number:>12,}  {fault}")
    print(
        f"{faults.total():>12,}  faults in {histories:,} histories of the {options.level}, "
        f"{seconds:.0f} s: nothing lost, doubled or changed"
    )


def parsed() -> Namespace:
    """The options of the command."""
    parser = ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--level", choices=list(LEVELS), default="journal")
    parser.add_argument("--seed", type=int, help="replay this history, step by step")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--events", type=int, help="go on up to so many faults instead")
    parser.add_argument("--first-seed", type=int, help="begin here (default: anywhere)")
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
