"""An ordinary Flower app and ours race with the same clients, of which one is slow.

    python examples/flower/race.py [--seconds 150] [--nodes 4] [--pause 30] [--out runs/race]

`quickstart` is a Flower app for PyTorch that imports nothing of asyncfeded. First it runs as it is:
Flower's FedAvg, in rounds that wait for every node. Then one line of its pyproject.toml names
another ServerApp, `quickstart.asynchronous`; its clients stay as they are. Both have the same time,
the same first model and the same test data on the server.
"""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path

from matplotlib.figure import Figure

from local_federation import FederationError, local_federation

APP = Path(__file__).parent / "quickstart"
SYNCHRONOUS = 'serverapp = "quickstart.server_app:app"'
ASYNCHRONOUS = 'serverapp = "quickstart.asynchronous:app"'
RACERS = {"FedAvg of Flower": SYNCHRONOUS, "AsyncFedED, the same clients": ASYNCHRONOUS}

Curve = list[dict[str, float]]


def main() -> int:
    """Run both, print and draw who got how far; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--pause", type=float, default=30.0, help="of the slow node, per message")
    parser.add_argument("--out", type=Path, default=Path("runs/race"))
    given = parser.parse_args()
    out = given.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    curves: dict[str, Curve] = {}
    try:
        for number, (name, component) in enumerate(RACERS.items()):
            folder = out / str(number)
            app = _app_with(component, folder)
            curves[name] = race(app, folder, given.nodes, given.pause, given.seconds)
            last = curves[name][-1]
            print(f"{name:30} {last['accuracy']:.1%} after {given.seconds:.0f} s", flush=True)
    except FederationError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    title = f"{given.nodes} nodes, of which one takes {given.pause:.0f} s longer"
    draw(curves, title, given.seconds, out / "race.png")
    print(out / "race.png")
    return 0


def _app_with(component: str, folder: Path) -> Path:
    """The app with another ServerApp: a copy with one line changed."""
    app = folder / APP.name
    shutil.copytree(APP, app, ignore=shutil.ignore_patterns("__pycache__"))
    settings = app / "pyproject.toml"
    settings.write_text(settings.read_text().replace(SYNCHRONOUS, component))
    return app


def race(app: Path, folder: Path, nodes: int, pause: float, seconds: float) -> Curve:
    """Run an app for some seconds; return what its server measured."""
    curve = folder / "curve.jsonl"
    with local_federation(folder / "processes") as federation:
        for number in range(nodes):
            node: dict[str, float] = {"partition-id": number, "num-partitions": nodes}
            if number == nodes - 1:
                node["pause-seconds"] = pause
            federation.start_node(f"node-{number}", node)
        # Nobody is sent a message before all are there, so that both begin with the same nodes.
        federation.run(app, {"nodes": nodes, "num-rounds": 10_000, "curve": str(curve)})
        while not curve.exists():  # the first line is written when the clock starts
            federation.check()
            time.sleep(0.1)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            federation.check()
            time.sleep(0.1)
        points = [json.loads(line) for line in curve.read_text().splitlines()]
    return [point for point in points if point["seconds"] <= seconds]


def draw(curves: dict[str, Curve], title: str, seconds: float, path: Path) -> None:
    """Draw accuracy over real time; a server without a new model keeps its accuracy."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for (name, curve), colour in zip(curves.items(), ("#0072B2", "#D55E00"), strict=True):
        times = [point["seconds"] for point in curve] + [seconds]
        values = [100 * point["accuracy"] for point in curve]
        axes.step(times, [*values, values[-1]], where="post", color=colour, label=name)
    axes.set(xlabel="seconds", ylabel="accuracy on the server's data (%)", xlim=(0, seconds))
    axes.set_title(title, loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
