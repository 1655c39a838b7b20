"""What an update costs on Flower beside a bare loop of Flower's messages that only passes arrays.

    python benchmarks/flower.py [--parameters 33310] [--updates 150] [--repeats 5]

Both run in one ServerApp on Flower's simulation engine, in turn, over the same nodes and the same
ClientApp, which adds a number to every array: as little as a client can do, so that messages are
all that takes time. The bare loop sends each node the arrays that it has sent, and looks for
replies every few milliseconds. Ours decodes them, measures staleness, makes a version of every
update, adapts K and encodes the version; with a journal, every update is safe on the disk, too,
before its client is answered.
"""

import argparse
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

os.environ |= {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from asyncfeded import Checkpoint, Server, rules
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.flower_transport import FlowerTransport
from asyncfeded.flower.messages import Messages
from asyncfeded.flower.model import Entry, Layout
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Received
from asyncfeded.runtime.loop import run

NODES = 4
CORES = 2
TENSORS = 6
"""As many arrays as a perceptron of three layers has."""
WARM_UP = 3 * NODES
"""Updates at the beginning of a bout that are not timed."""
POLL_SECONDS = 0.005

client = ClientApp()


@client.train()
def train(message: Message, _: Context) -> Message:
    arrays = message.content.array_records["arrays"]
    more = {name: Array(array.numpy() + np.float32(0.01)) for name, array in arrays.items()}
    metrics = MetricRecord({"num-examples": 10})
    content = RecordDict({"arrays": ArrayRecord(more), "metrics": metrics})
    return Message(content, reply_to=message)


def layout_of(parameters: int) -> Layout:
    bounds = np.linspace(0, parameters, TENSORS + 1).astype(int).tolist()
    return tuple(
        Entry(f"layer{n}", start, end, (end - start,), np.dtype(np.float32))
        for n, (start, end) in enumerate(pairwise(bounds))
    )


def bare(grid: Grid, codec: Codec, updates: int) -> Iterator[None]:
    """Pass arrays back and forth; a step per reply."""
    config = ConfigRecord({"local-epochs": 1})

    def send(node_id: int, arrays: ArrayRecord) -> str:
        record = RecordDict({"arrays": arrays, "config": config})
        (message_id,) = grid.push_messages([Message(record, node_id, "train")])
        return message_id

    first = codec.record(np.zeros(codec.size, np.float32))
    awaited = {send(node_id, first) for node_id in grid.get_node_ids()}
    while updates > 0:
        replies = list(grid.pull_messages(list(awaited)))
        for reply in replies:
            awaited.remove(reply.metadata.reply_to_message_id)
            node_id = reply.metadata.src_node_id
            awaited.add(send(node_id, reply.content.array_records["arrays"]))
            updates -= 1
            yield
        if not replies:
            time.sleep(POLL_SECONDS)


def ours(grid: Grid, codec: Codec, updates: int, folder: Path | None = None) -> Iterator[None]:
    """Run AsyncFedED for this many updates; a step per update."""
    server = Server(np.zeros(codec.size, np.float32), rules.asyncfeded())
    messages = Messages(identity="node", poll_seconds=POLL_SECONDS)
    transport = FlowerTransport(grid, codec, messages, 3600.0)
    with kept(transport, server, folder) as (carried, checkpoint):
        control = Run(server, 3600.0)
        for event in run(server, carried, 3600.0, control=control):
            if checkpoint is not None:
                checkpoint(event, control)
            if isinstance(event, Received):
                assert event.receipt.accepted
                yield
                if server.accepted >= updates:
                    control.stop()


@contextmanager
def kept(transport: FlowerTransport, server: Server, folder: Path | None) -> Iterator[tuple]:  # type: ignore[type-arg]
    """The same transport, with a journal in a folder if there is one."""
    if folder is None:
        yield transport, None
        return
    checkpoint = Checkpoint(folder)
    with checkpoint.opened(False), checkpoint.keeping_signals(transport, server) as carried:
        yield carried, checkpoint


def seconds_per_update(steps: Iterator[None], updates: int) -> float:
    times = [time.perf_counter() for _ in steps]
    assert len(times) >= updates
    return (times[-1] - times[WARM_UP - 1]) / (len(times) - WARM_UP)


def compare(grid: Grid, codec: Codec, updates: int, repeats: int, folder: Path) -> None:
    while len(list(grid.get_node_ids())) < NODES:
        time.sleep(0.1)
    kinds: dict[str, Callable[[int], Iterator[None]]] = {
        "bare loop": lambda _: bare(grid, codec, updates),
        "asyncfeded": lambda _: ours(grid, codec, updates),
        "with journal": lambda n: ours(grid, codec, updates, folder / str(n)),
    }
    for make in kinds.values():
        for _ in make(-1):  # loads and compiles what there is
            pass
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for repeat in range(repeats):
        for name in sorted(kinds, key=lambda name: (hash_of(name, repeat), name)):
            found[name].append(seconds_per_update(kinds[name](repeat), updates))
    print(f"{codec.size:,} parameters in {TENSORS} arrays, {NODES} nodes on {CORES} cores,")
    print(f"{updates} updates a bout, {repeats} bouts of each in turn")
    for name, all_of_them in found.items():
        ratios = [one / base for one, base in zip(all_of_them, found["bare loop"], strict=True)]
        print(
            f"{name:13} {1 / median(all_of_them):6.1f} updates/s  "
            f"{1e3 * median(all_of_them):6.1f} ms per update  "
            f"{median(ratios):5.2f} × the bare loop's time ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def hash_of(name: str, repeat: int) -> int:
    """Another order in every repeat."""
    return (len(name) * 7 + repeat * 5) % 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parameters", type=int, default=33_310)
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    app = ServerApp()

    @app.main()
    def measure(grid: Grid, _: Context) -> None:
        with TemporaryDirectory() as folder:
            codec = Codec(layout_of(arguments.parameters))
            compare(grid, codec, arguments.updates, arguments.repeats, Path(folder))

    run_simulation(
        server_app=app,
        client_app=client,
        num_supernodes=NODES,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": CORES, "include_dashboard": False},
        },
    )


if __name__ == "__main__":
    main()
