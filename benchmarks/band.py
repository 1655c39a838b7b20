"""The README's picture: the paper's five rules on Synthetic-1-1, over data drawn anew.

    python benchmarks/band.py [--data-seeds 5] [--out docs/images/synthetic-1-1.png]

Each data seed draws clients, their sizes and their examples by the same recipe; none is picked. The
model is narrower than the paper's, so that the whole takes minutes on two cores.
"""

import argparse
from pathlib import Path

from asyncfeded import Comparison
from asyncfeded.experiment import PAPER_RULES, resolve, run_settings

SETTINGS = {
    "task": "synthetic-1-1",
    "widths": (64, 32),
    "seconds": 60,
    "suspension": 0.1,
    "workers": 2,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("docs/images/synthetic-1-1.png"))
    given = parser.parse_args()
    comparison = Comparison()
    for number in range(1, given.data_seeds + 1):
        for rule in PAPER_RULES:
            run = resolve(run_settings({**SETTINGS, "rule": rule, "data_seed": number}))
            result = run.run()
            comparison.add(rule, number, result)
            print(f"data seed {number}  {rule:<18} {result.max_accuracy:.2%}", flush=True)
    comparison.plot(given.out, f"Synthetic-1-1, P = 0.1, {given.data_seeds} data seeds")
    print(comparison)


if __name__ == "__main__":
    main()
