"""What Flower costs per update, with real processes on this machine.

    python benchmarks/federation.py [--nodes 2] [--updates 10]

The app in `benchmarks/flower_app` only passes arrays: a server answers each update at once with the
next message, and clients train nothing. So a node's seconds per update are Flower's own. Each row
is a federation of its own: a SuperLink and SuperNodes with the settings that the row names.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples" / "flower"))

from local_federation import local_federation  # noqa: E402

APP = ROOT / "benchmarks" / "flower_app"
POLL = "FLWR_SUPEREXEC_TASK_POLL_INTERVAL"
ROWS: dict[str, tuple[dict[str, str], bool]] = {
    "stock": ({POLL: "1"}, False),
    "stock, and the client loads torch": ({POLL: "1"}, True),
    "poll every 0.05 s": ({POLL: "0.05"}, False),
    "poll every 0.05 s, and the client loads torch": ({POLL: "0.05"}, True),
}


def seconds_per_update(
    folder: Path, variables: dict[str, str], torch: bool, nodes: int, updates: int
) -> list[float]:
    """The seconds between two updates of one node, for all nodes."""
    out = folder / "arrivals.json"
    with local_federation(folder, variables=variables) as federation:
        for number in range(nodes):
            federation.start_node(f"node-{number}", {"partition-id": number})
        settings: dict[str, int | str] = {"nodes": nodes, "updates": updates}
        settings |= {"import-torch": torch, "out": str(out)}
        federation.run(APP, settings)
        while not out.exists():
            federation.check()
            time.sleep(0.2)
        arrivals = json.loads(out.read_text())
    of_node: dict[int, list[float]] = {}
    for node, seconds in arrivals:
        of_node.setdefault(node, []).append(seconds)
    return [later - earlier for times in of_node.values() for earlier, later in pairwise(times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--updates", type=int, default=10)
    given = parser.parse_args()
    print(f"{given.nodes} nodes, {given.updates} updates; seconds per update of a node")
    for name, (variables, torch) in ROWS.items():
        with tempfile.TemporaryDirectory() as folder:
            times = seconds_per_update(Path(folder), variables, torch, given.nodes, given.updates)
        least, most = min(times), max(times)
        print(f"{name:48} {statistics.median(times):5.1f}  ({least:.1f} to {most:.1f})", flush=True)


if __name__ == "__main__":
    main()
