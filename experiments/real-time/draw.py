"""Draw runs in real time beside the virtual clock's prediction: a panel per rule.

python experiments/real-time/draw.py runs/real-time/ray runs/real-time/virtual experiments/real-time

Both folders are those of `asyncfeded compare`, with the same settings but for `--on`. Writes
real-time.png and real-time.csv.
"""

import csv
import json
import sys
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

RULES = ("asyncfeded", "fedasync-constant", "fedasync-hinge", "fedavg", "fedprox")
FIGURES = ("max_accuracy", "final_accuracy", "t90_seconds", "updates", "versions")
REAL = {"color": "#D55E00", "linewidth": 3.2, "alpha": 0.75}
VIRTUAL = {"color": "black", "linewidth": 1.4, "linestyle": (0, (4, 2))}


def curve(folder: Path) -> tuple[list[float], list[float]]:
    """Seconds and accuracy of a run."""
    with (folder / "accuracy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [float(row["seconds"]) for row in rows], [float(row["accuracy"]) for row in rows]


def main() -> None:
    """Read both folders, draw and tabulate."""
    real, virtual, out = map(Path, sys.argv[1:])
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    panels = list(figure.subplots(2, 3, sharex=True, sharey=True).flat)
    with (out / "real-time.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["rule", "clock", *FIGURES])
        for rule, axes in zip(RULES, panels, strict=False):
            for name, folder, style in (("Ray", real, REAL), ("virtual", virtual, VIRTUAL)):
                run = folder / rule / "seed-0"
                axes.plot(*curve(run), label=name, **style)
                summary = json.loads((run / "summary.json").read_text())
                table.writerow([rule, name.lower(), *(summary[figure] for figure in FIGURES)])
            axes.set_title(rule)
            axes.grid(alpha=0.3)
            axes.tick_params(labelbottom=True)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    empty = panels[-1]
    empty.axis("off")
    handles, labels = panels[0].get_legend_handles_labels()
    names = ["Ray, real seconds", "virtual clock's prediction"]
    assert labels == ["Ray", "virtual"]
    empty.legend(handles, names, loc="center", frameon=False, fontsize=12)
    figure.supxlabel("seconds")
    figure.supylabel("test accuracy")
    figure.savefig(out / "real-time.png", dpi=130)


if __name__ == "__main__":
    main()
