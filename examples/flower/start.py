"""A whole federation on this machine, by one command: hospitals that train asynchronously.

    python examples/flower/start.py [--tls] [--nodes 4] [--seconds 75] [--out runs/federation]

It starts a SuperLink and a SuperNode per hospital, runs the app in `hospitals`, and ends every
process again, also after Ctrl-C or an error. Hospitals have different numbers of patients, and the
last is slow. With --tls the SuperLink shows a certificate, and takes only nodes whose keys are
registered.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_federation import LOOPBACK, Certificates, FederationError, LocalFederation
from local_federation import local_federation as started

HERE = Path(__file__).parent
SLOW_SECONDS = 12
LINE_SECONDS = 10.0
"""How often a line is printed where the output is no terminal."""


def main() -> int:
    """Run the federation; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tls", action="store_true", help="certificates and registered keys")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=75.0)
    parser.add_argument("--updates", type=int, default=100_000, help="end after so many")
    parser.add_argument("--rule", default="asyncfeded")
    parser.add_argument("--out", type=Path, default=Path("runs/federation"))
    parser.add_argument("--overwrite", action="store_true")
    given = parser.parse_args()
    out = given.out.resolve()
    if out.exists() and not given.overwrite:
        print(f"--out: {out} is there already: choose another folder, or add --overwrite")
        return 2
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    names = [f"hospital-{number}" for number in range(given.nodes)]
    try:
        with open_federation(out, given.tls, names) as (federation, keys):
            for number, name in enumerate(names):
                settings: dict[str, Any] = {"partition-id": number, "patients": 200 * (number + 1)}
                if number == given.nodes - 1:
                    settings["pause-seconds"] = SLOW_SECONDS
                federation.start_node(name, settings, keys.get(name))
            settings = {"seconds": given.seconds, "updates": given.updates}
            settings |= {"rule": given.rule, "folder": str(out)}
            run = federation.run(HERE / "hospitals", settings)
            follow(federation, run, out)
    except FederationError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nended; what was learned is in the folder's checkpoint", file=sys.stderr)
        return 130
    summarise(out)
    return 0


@contextmanager
def open_federation(
    out: Path, tls: bool, names: list[str]
) -> Iterator[tuple[LocalFederation, dict[str, Path]]]:
    """A SuperLink; with TLS also the private key of each node, whose public key is registered."""
    if not tls:
        with started(out / "processes") as federation:
            yield federation, {}
        return
    folder = out / "keys"
    subprocess.run(
        [HERE / "keys.sh", folder, LOOPBACK, *names], check=True, stderr=subprocess.DEVNULL
    )
    certificates = Certificates(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    with started(out / "processes", certificates, ["--enable-supernode-auth"]) as federation:
        for name in names:
            key = str(folder / f"{name}.pub")
            federation.flwr("supernode", "register", key, "local", "--name", name)
        yield federation, {name: folder / name for name in names}


def follow(federation: LocalFederation, run: str, out: Path) -> None:
    """Show the run in one line until its results are there."""
    began = printed = time.monotonic()
    has_begun = False
    is_terminal = sys.stdout.isatty()
    while not has_begun or federation.server_app() is not None:
        federation.check()
        has_begun = has_begun or federation.server_app() is not None
        line = status(out) or f"waiting for the server and the nodes, {_since(began)}"
        if is_terminal:
            print(f"\r\033[K{line}", end="", flush=True)
        elif time.monotonic() - printed >= LINE_SECONDS:
            print(line, flush=True)
            printed = time.monotonic()
        time.sleep(0.5)
    print(f"\r\033[K{status(out)}" if is_terminal else status(out), flush=True)
    if not (out / "summary.json").exists():
        last = federation.log_of("superlink")[-3000:]
        raise FederationError(f"the run is {federation.status(run)}, without results:\n{last}")


def status(out: Path) -> str:
    """What the server's callback has written so far, in one line."""
    watch = out / "watch.jsonl"
    told = [json.loads(line) for line in watch.read_text().splitlines()] if watch.exists() else []
    if not told:
        return ""
    updates = [line["client"] for line in told if "client" in line]
    accuracy = [line["accuracy"] for line in told if "accuracy" in line]
    counts = ", ".join(f"{name} {updates.count(name)}" for name in sorted(set(updates)))
    share = f", accuracy {accuracy[-1]:.1%}" if accuracy else ""
    return f"{told[-1]['seconds']:5.1f} s{share}, {len(updates)} updates ({counts})"


def summarise(out: Path) -> None:
    """Say what came of the run, and where it is."""
    summary = json.loads((out / "summary.json").read_text())
    for name in ("max_accuracy", "t90_seconds", "versions", "updates", "rejected"):
        print(f"{name:15} {summary[name]}")
    for name in ("accuracy.png", "model.safetensors", "events.jsonl", "processes"):
        print(f"{'':15} {out / name}")


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
