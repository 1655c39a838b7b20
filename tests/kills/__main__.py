"""The command: python -m kills, from the folder tests."""

import time
from argparse import ArgumentParser
from pathlib import Path
from secrets import randbits
from tempfile import TemporaryDirectory

from kills.histories import HistoryError, Killed, history, prepare
from kills.nursery import Nursery


def main() -> None:
    """Replay a history, or go on until there were enough kills, and print the totals."""
    parser = ArgumentParser(prog="python -m kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="go on up to so many kills")
    parser.add_argument("--seed", type=int, help="replay this history, step by step")
    parser.add_argument("--first-seed", type=int, help="begin here (default: anywhere)")
    options = parser.parse_args()
    began, killed = time.monotonic(), Killed()
    with TemporaryDirectory() as folder, Nursery(Path(folder)) as nursery:
        prepare(Path(folder))
        try:
            if options.seed is not None:
                history(nursery, options.seed, killed, tell=True)
            else:
                seed = randbits(31) if options.first_seed is None else options.first_seed
                print(f"seeds from {seed} on", flush=True)
                while killed.kills < options.kills:
                    history(nursery, seed, killed)
                    seed += 1
        except HistoryError as error:
            raise SystemExit(str(error)) from None
    print(
        f"{killed.kills:,} kills in {killed.histories:,} runs, {killed.unsaved:,} of them before "
        f"the first save and {killed.ending:,} while results were written, "
        f"{time.monotonic() - began:.0f} s: log, curve, clients and model as without a kill"
    )


if __name__ == "__main__":
    main()
