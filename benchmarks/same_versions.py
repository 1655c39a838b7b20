"""Do the tools that simulate asynchronous training compute the same? One case, worked by hand.

    python benchmarks/same_versions.py [--envs FOLDER]

Three clients, one parameter, fixed speeds, full-batch gradient steps: nothing is random. For
FedAsync (constant, polynomial, hinge) and FedBuff, it prints the sequence of versions as the paper
has it, worked in exact fractions in `peer_rounds/by_hand.py`, and beside it that of this project's
engine, of APPFL's vsim and of FLGo. Where a tool differs, it names the formula that gives the
tool's sequence, arrival by arrival; if none of those known here does, it says so, and the exit code
is 1. The tools are installed as for `peers.py`.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

from peer_rounds.by_hand import OTHERS, PAPER, Seen, worked
from peer_rounds.environments import environment_python
from peer_rounds.scripted_case import ARRIVALS
from peer_rounds.simulated import Rule

BENCHMARKS = Path(__file__).resolve().parent
TOOLS = {"engine": "this engine", "appfl": "APPFL 1.12.0", "flgo": "FLGo 0.4.4"}
PLACES = 1e-5
"""The tools compute in float32: versions below 16 have an error of about 1e-6."""


def versions_of(tool: str, envs: Path) -> dict[Rule, list[dict[str, Any]]]:
    """What a tool does with every rule, in a process of its own."""
    python = sys.executable if tool == "engine" else str(environment_python(tool, envs))
    done = subprocess.run(
        [python, "-m", "peer_rounds.scripted_case", "--tool", tool],
        cwd=BENCHMARKS,
        check=True,
        capture_output=True,
        text=True,
    )
    seen: dict[Rule, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return seen


def is_same(seen: list[dict[str, Any]], expected: list[Seen]) -> bool:
    """Whether the same clients arrive at the same times and leave the same versions."""
    return len(seen) == len(expected) and all(
        one["units"] == other.units
        and tuple(one["clients"]) == other.clients
        and abs(one["version"] - float(other.version)) < PLACES
        for one, other in zip(seen, expected, strict=True)
    )


def verdict(rule: Rule, seen: list[dict[str, Any]]) -> str | None:
    """The formula that gives a tool's sequence; None if none does."""
    if is_same(seen, worked(PAPER[rule], ARRIVALS)):
        return "as the paper"
    for words, formula in OTHERS[rule].items():
        if is_same(seen, worked(formula, ARRIVALS)):
            return words
    return None


def when(seen: list[dict[str, Any]]) -> list[str]:
    """The arrivals: when, and whose."""
    return [
        f"{one['units']:g} " + " and ".join("ABC"[client] for client in one["clients"])
        for one in seen
    ]


def row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=Path, default=BENCHMARKS.parent / ".peers")
    envs = parser.parse_args().envs.resolve()
    versions = {tool: versions_of(tool, envs) for tool in TOOLS}
    unexplained = 0
    for rule in get_args(Rule):
        paper = [vars(seen) for seen in worked(PAPER[rule], ARRIVALS)]
        print(f"\n{row(rule, when(paper))}")
        print(row("---", ["---"] * len(paper)))
        print(row("by hand", [f"{float(one['version']):.6g}" for one in paper]))
        for tool, name in TOOLS.items():
            seen = versions[tool][rule]
            if when(seen) != when(paper):
                print(row("", when(seen)))
            found = verdict(rule, seen)
            unexplained += found is None
            note = found or "no formula known here gives this"
            print(row(f"{name}: {note}", [f"{one['version']:.6g}" for one in seen]))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
