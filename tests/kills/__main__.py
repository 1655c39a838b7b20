"""The command: python -m kills, from the folder tests."""

import time
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from secrets import randbits
from tempfile import TemporaryDirectory

from kills import histories, in_real_time, on_ray
from kills.histories import HistoryError, Killed
from kills.nursery import Nursery

History = Callable[[int, Killed], None]
"""Makes the history of a seed, and counts its kills."""


def main() -> None:
    """Replay a history, or go on until there were enough kills or an interrupt; print totals."""
    parser = ArgumentParser(prog="python -m kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="go on up to so many kills")
    parser.add_argument("--on", choices=list(WORLDS), default="virtual")
    parser.add_argument("--seed", type=int, help="replay this history, step by step")
    parser.add_argument("--first-seed", type=int, help="begin here (default: anywhere)")
    options = parser.parse_args()
    began, killed = time.monotonic(), Killed(tell=options.seed is not None)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        history = WORLDS[options.on](stack, Path(folder))
        try:
            if options.seed is not None:
                history(options.seed, killed)
            else:
                seed = randbits(31) if options.first_seed is None else options.first_seed
                print(f"seeds from {seed} on", flush=True)
                while killed.kills < options.kills:
                    history(seed, killed)
                    seed += 1
        except HistoryError as error:
            raise SystemExit(str(error)) from None
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    print(f"{killed}, {time.monotonic() - began:.0f} s: {killed.result}")


def on_virtual_clock(stack: ExitStack, folder: Path) -> History:
    """Runs of the command line, in processes that are forked quickly."""
    histories.prepare(folder)
    return partial(histories.history, stack.enter_context(Nursery(folder)))


def on_real_clock(stack: ExitStack, folder: Path) -> History:
    """Servers whose clients are in their own process, forked quickly."""
    return partial(in_real_time.history, stack.enter_context(Nursery(folder)))


def on_a_ray(stack: ExitStack, folder: Path) -> History:
    """Servers on one Ray, which stays when they are killed."""
    from asyncfeded.cluster.session import ray_session

    stack.enter_context(ray_session())
    import ray

    return partial(on_ray.history, folder, ray.get_runtime_context().gcs_address)


WORLDS = {"virtual": on_virtual_clock, "real": on_real_clock, "ray": on_a_ray}

if __name__ == "__main__":
    main()
