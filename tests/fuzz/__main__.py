"""The command: python -m fuzz, from the folder tests."""

import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from fuzz.target import accepts, check_memory, counter_of
from fuzz.targets import TARGETS


def main() -> None:
    """Fuzz the targets one after the other, or try one input again."""
    options = parsed()
    if options.input is not None:
        content = options.input.read_bytes()
        taken = accepts(TARGETS[options.targets[0]], content)
        check_memory(TARGETS[options.targets[0]], content)
        print("taken" if taken else "refused")
        return
    names = options.targets or list(TARGETS)
    total = refused = failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            corpora = Path(options.keep or folder)
            executions, problem = fuzzed(name, max(1, options.seconds // len(names)), corpora)
            counted = counter_of(corpora / name)
            refusals = int.from_bytes(counted.read_bytes(), sys.byteorder)
            kept, problems = replayed(name, corpora / name)
        problems += [problem] if problem else []
        total += executions
        refused += refusals
        failed += bool(problems)
        print(
            f"{name:>12}  {executions:>12,} inputs, {refusals:>12,} refused, {kept:>6,} kept for "
            "what they reach"
        )
        print(*problems, sep="\n", end="\n" if problems else "", flush=True)
    print(
        f"{total:,} inputs to {len(names)} targets, {refused:,} of them refused: {failed} targets "
        "do not stand them"
    )
    raise SystemExit(failed > 0)


def fuzzed(name: str, seconds: int, corpora: Path) -> tuple[int, str | None]:
    """Fuzz a target; gives how many inputs were tried, and what was found."""
    command = [sys.executable, "-m", "fuzz.guided", name, "--seconds", str(seconds)]
    done = subprocess.run(
        [*command, "--corpus", str(corpora / name)], capture_output=True, text=True, check=False
    )
    text = done.stderr + done.stdout
    counted = re.findall(r"number_of_executed_units: (\d+)", text) or re.findall(r"#(\d+)", text)
    if done.returncode == 0:
        return int(counted[-1]), None
    found = sorted(corpora.glob(f"{name}-found-*"))
    inputs = "\n".join(f"{path}: {path.read_bytes()!r}" for path in found)
    return int(counted[-1]) if counted else 0, f"{text[-4000:]}\n{inputs}"


def replayed(name: str, corpus: Path) -> tuple[int, list[str]]:
    """Give all inputs that reached something new to the target again, and look at its memory."""
    kept, problems = sorted(corpus.iterdir()), []
    for path in kept:
        try:
            check_memory(TARGETS[name], path.read_bytes())
        except AssertionError as error:
            problems.append(f"{path}: {error}")
    return len(kept), problems


def parsed() -> Namespace:
    """The options of the command."""
    parser = ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--input", type=Path, help="try this input of one target again")
    parser.add_argument("--keep", help="a folder for what is found, also for the next time")
    options = parser.parse_args()
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"TARGET must be one of {', '.join(TARGETS)}; given {name!r}")
    return options


if __name__ == "__main__":
    main()
