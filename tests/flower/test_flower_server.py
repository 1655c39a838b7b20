"""The ServerApp: ClientApps in Flower's manner train unchanged; a run goes on after any stop."""

import inspect
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from httpx import ConnectError
from torch import nn

import asyncfeded
from asyncfeded import Result, Run, StopAfter, load_model, rules
from asyncfeded.callbacks import Callback
from asyncfeded.core.errors import ClusterError, FileError, SettingError
from asyncfeded.flower.messages import Messages
from asyncfeded.runtime.events import Evaluated, Event, Joined, Left, Received, Resumed
from fake_grid import Answer, FakeGrid, Node, arrays_of, config_of, named, plus, reply_with

serve: Callable[..., Result] = asyncfeded.flower.serve


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def data(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(number)
    x = torch.randn(90, 4, generator=draw)
    return x, x[:, :3].argmax(1)


foreign = ClientApp()


@foreign.train()
def train(message: Message, context: Context) -> Message:
    """As in Flower's quickstart for PyTorch: nothing of ours is imported or read."""
    model = make_model()
    model.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
    epochs = message.content.config_records["config"]["local-epochs"]
    assert isinstance(epochs, int)
    torch.set_num_threads(1)  # the cores of a machine that runs tests are shared
    x, y = data(int(context.node_config["partition-id"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    metrics = MetricRecord({"train_loss": loss.item(), "num-examples": len(y)})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


def node(number: int, app: ClientApp, name: str = "") -> Node:
    context = Context(1, number, {"partition-id": number}, RecordDict(), {})

    def answer(message: Message) -> Message:
        try:
            return app(message, context)
        except ValueError as error:
            from flwr.app import Error

            return Message(Error(2, str(error)), reply_to=message)

    return Node(number, answer, 0.0, name)


def grid_of(*nodes: Node, kind: type[FakeGrid] = FakeGrid) -> FakeGrid:
    grid = kind(time.monotonic)
    grid.add(*nodes)
    return grid


def test_a_client_app_in_flowers_manner_trains_unchanged() -> None:
    grid = grid_of(*(node(n, foreign) for n in (1, 2, 3)))
    received = []

    def listen(event: Event, _: Run) -> None:
        if isinstance(event, Received):
            received.append(event)

    model = make_model()
    result = serve(
        grid,
        model,
        test=data(9),
        seconds=600,
        evaluate_every=0.2,
        callbacks=[StopAfter(30), listen],
    )
    assert result.updates == 30
    assert not result.refused
    assert result.max_accuracy is not None
    assert result.max_accuracy > 0.8
    assert set(result.clients) == {"node-1", "node-2", "node-3"}
    assert {event.num_examples for event in received} == {90}
    # K adapts, and reaches the ClientApp by the key that it reads.
    ks = {config_of(m)["local-epochs"] for m in grid.log if m.metadata.message_type == "train"}
    assert len(ks) > 1
    assert 10 in ks
    # The model is left as the run has trained it.
    right = (model(data(9)[0]).argmax(1) == data(9)[1]).float().mean()
    assert float(right) == pytest.approx(result.curve[-1].accuracy)


def test_our_client_app_under_a_synchronous_rule_with_figures() -> None:
    app = asyncfeded.flower.client_app(
        make_model, lambda context: data(int(context.node_config["partition-id"]))
    )
    grid = grid_of(*(node(n, app) for n in (1, 2)))
    result = serve(
        grid,
        make_model(),
        rule=rules.fedprox(mu=0.1),
        seconds=600,
        evaluate_on=2,
        evaluate_every=0.5,
        callbacks=[StopAfter(20)],
    )
    assert set(result.clients) == {"client-1", "client-2"}
    assert result.versions >= 10
    assert {"federated_accuracy", "federated_loss", "federated_clients"} == set(result.metrics)
    trained = [m for m in grid.log if m.metadata.message_type == "train"]
    assert {config_of(message)["proximal-mu"] for message in trained} == {0.1}


def test_the_app_is_flowers() -> None:
    app = asyncfeded.flower.server_app(make_model(), seconds=600, callbacks=[StopAfter(3)])
    assert isinstance(app, ServerApp)
    grid = grid_of(node(1, foreign, "site"))
    app(grid, Context(1, 1, {}, RecordDict(), {}))
    assert len(grid.log) >= 3


def test_the_results_of_a_run_are_in_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    model = make_model()
    grid = grid_of(node(1, foreign, "site"))
    result = serve(grid, model, test=data(9), seconds=600, callbacks=[StopAfter(5)], folder=out)
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("summary.json", "accuracy.csv", "accuracy.png", "clients.csv", "events.jsonl"),
        "model.safetensors",
    }
    summary = json.loads((out / "summary.json").read_text())
    assert summary["updates"] == 5 == result.updates
    assert summary["finished"]
    fresh = make_model()
    load_model(fresh, out / "model.safetensors")
    assert all(map(torch.equal, fresh.state_dict().values(), model.state_dict().values()))
    with pytest.raises(FileError, match="of a run that is over: choose another folder"):
        serve(grid, make_model(), seconds=600, folder=out)


class PowerCutError(BaseException):
    """Ends a ServerApp as nothing of it expects."""


class CutGrid(FakeGrid):
    """A Grid at whose n-th call the power goes."""

    calls_left = 10**9

    def _call(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise PowerCutError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        self._call()
        ids = super().push_messages(messages)
        self._call()
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        self._call()
        replies = super().pull_messages(message_ids)
        self._call()
        return replies


def adds(number: int) -> Answer:
    """A ClientApp that adds another number each time."""
    return named(f"client-{number}", plus(0.1 * number))


def sent_versions(grid: FakeGrid) -> dict[int, bytes]:
    trained = (m for m in grid.log if m.metadata.message_type == "train")
    return {
        config_of(m)["server-round"]: b"".join(a.tobytes() for a in arrays_of(m).values())
        for m in trained
    }


@pytest.mark.parametrize("calls", [*range(1, 40, 3), *range(41, 75, 7)])
def test_a_run_goes_on_after_its_server_stops_at_any_moment(tmp_path: Path, calls: int) -> None:
    def life(cut_after: int, ids: tuple[int, ...], *more: Callback) -> tuple[CutGrid, list[Event]]:
        grid = CutGrid(time.monotonic)
        grid.add(*(Node(n, adds(n % 10), 0.0) for n in ids))
        grid.calls_left = cut_after
        events: list[Event] = []

        def listen(event: Event, _: Run) -> None:
            events.append(event)

        try:
            callbacks = [StopAfter(30), listen, *more]
            serve(grid, make_model(), seconds=600, callbacks=callbacks, folder=tmp_path / "out")
        except PowerCutError:
            assert cut_after < 10**9
        return grid, events

    first, before = life(calls, (1, 2))
    # The SuperNodes were restarted, too: other node ids, and the same clients.
    second, after = life(10**9, (11, 12))
    known, again = sent_versions(first), sent_versions(second)
    # What a client has heard of is there again, to the bit.
    assert all(again[version] == known[version] for version in known.keys() & again.keys())
    assert max(again) >= max(known, default=0)
    if any(isinstance(event, Received) for event in before):
        assert isinstance(after[0], Resumed)
    # Nothing counts twice: an update that was accepted is a version.
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["updates"] == 30
    assert summary["versions"] == 31
    lines = (tmp_path / "out" / "events.jsonl").read_text().splitlines()
    updates = [json.loads(line) for line in lines]
    rounds = [(u["client"], u["round"]) for u in updates if u.get("event") == "update"]
    assert len(set(rounds)) == len(rounds)
    # K and the rounds of a client go on.
    for name in ("client-1", "client-2"):
        own = [number for client, number in rounds if client == name]
        assert own == sorted(own)


def test_a_client_that_comes_back_under_another_node_id_keeps_its_k() -> None:
    grid = grid_of(Node(1, adds(1), 0.0), Node(2, adds(2), 0.0))
    joined: list[Joined] = []
    epochs: dict[str, int] = {}

    def listen(event: Event, run: Run) -> None:
        if isinstance(event, Received):
            epochs.update({task.client_id: task.epochs for task in event.receipt.tasks})
            if run.updates == 20 and 1 in grid.nodes:
                grid.kill(1)
                grid.add(Node(7, adds(1), 0.0))
        if isinstance(event, Left):
            epochs["at leaving"] = epochs["client-1"]
        if isinstance(event, Joined):
            joined.append(event)
            if len(joined) == 3:
                run.stop()

    serve(grid, make_model(), seconds=600, callbacks=[listen])
    assert joined[2].client_id == "client-1"
    assert joined[2].epochs == epochs["at leaving"] != 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluate_on": -1}, "evaluate_on must be at least 0; given -1"),
        ({"seconds": "60"}, "seconds must be a number; given '60'"),
        ({"rule": "fedavg"}, "rule must be a rule, such as asyncfeded(); given a str"),
        ({"folder": 3}, "folder must be a path; given an int"),
        ({"messages": {}}, "messages must be a Messages; given a dict"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as raised:
        serve(grid_of(), make_model(), **options)
    assert str(raised.value) == message


def test_another_key_for_k_reaches_the_client() -> None:
    app = ClientApp()

    @app.train()
    def reads_epochs(message: Message, context: Context) -> Message:
        config = message.content.config_records["config"]
        assert config["epochs"] == 10
        assert config["lr"] == 0.5
        message.content["config"] = ConfigRecord({**config, "local-epochs": config["epochs"]})
        return train(message, context)

    grid = grid_of(node(1, app, "site"))
    messages = Messages(epochs_key="epochs", config=lambda task: {"lr": 0.5 / task.version})
    result = serve(grid, make_model(), seconds=600, callbacks=[StopAfter(1)], messages=messages)
    assert result.updates == 1


class Unreachable(FakeGrid):
    """A Grid whose SuperLink is gone."""

    def get_nodes(self) -> Any:
        raise ConnectError("[Errno 111] Connection refused")


def test_a_superlink_that_is_gone_is_one_line() -> None:
    with pytest.raises(ClusterError) as raised:
        serve(grid_of(kind=Unreachable), make_model(), seconds=600)
    assert str(raised.value) == (
        "flower cannot be reached: [Errno 111] Connection refused; a run with a folder goes on "
        "when it is started again with the same folder"
    )


def test_the_arguments_of_an_app_are_those_of_serve() -> None:
    names = list(inspect.signature(asyncfeded.flower.server_app).parameters)
    assert names == list(inspect.signature(asyncfeded.flower.serve).parameters)[1:]
    assert names[0] == "model"


def test_the_arrays_of_another_framework_are_a_list_of_parameters() -> None:
    arrays = [np.ones((2, 3), np.float32), np.zeros(2, np.float32)]
    model = nn.ParameterList(torch.from_numpy(array) for array in arrays)
    app = ClientApp()

    @app.train()
    def train_with_numpy(message: Message, context: Context) -> Message:
        arrays = message.content.array_records["arrays"].to_numpy_ndarrays()
        arrays = [array + np.float32(0.5) for array in arrays]
        return reply_with(message, ArrayRecord(arrays), num_examples=3)

    result = serve(grid_of(node(1, app, "site")), model, seconds=600, callbacks=[StopAfter(2)])
    assert result.updates == 2
    assert model[1].tolist() == [1.0, 1.0]


def test_what_clients_measure_now_and_then_has_its_column(tmp_path: Path) -> None:
    result = Result({})
    result.curve = [Evaluated(0.0, 1, {"loss": 2.0}), Evaluated(1.0, 2, {"auc": 0.5, "loss": 1.0})]
    result.write(tmp_path, "")
    assert (tmp_path / "accuracy.csv").read_text().splitlines() == [
        "seconds,version,loss,auc",
        "0.0,1,2.0,",
        "1.0,2,1.0,0.5",
    ]
    assert result.metric("auc") == [0.5]
    assert result.summary()["metrics"]["auc"] == {"final": 0.5, "min": 0.5, "max": 0.5}
