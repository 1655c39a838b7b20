"""Files that users bring: availability, hangs, labels, data sets, models, settings."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import torch
from torch import nn

from asyncfeded import Availability, load_model
from asyncfeded.availability.periods import RecordedPeriods
from asyncfeded.data.arrays import Arrays, read_arrays, write_arrays
from asyncfeded.data.columns import Column, read_column
from asyncfeded.data.femnist import Writers, read_leaf_writers
from asyncfeded.data.role_files import read_leaf_roles, read_roles
from asyncfeded.experiment.begun import BEGUN_FILE, CHECKPOINT, read_begun
from asyncfeded.experiment.finished import read_result
from asyncfeded.experiment.settings import read_config, run_settings
from asyncfeded.learning.saving import save_module
from asyncfeded.simulation.suspension import read_hangs
from asyncfeded.store.runs import RunStore
from fuzz.target import in_file
from leaf_folders import TEXT, image, shard, windows, write_side

CSV_TIMES = b"client,start,end\na,0,3600\nb,10.5,20\na,4000,5000\n"
CSV_HANGS = b"client,round,hang\na,0,1.5\nb,7,0\n"
RESULTS = {
    "summary.json": json.dumps(
        {
            "settings": {"on": "virtual"},
            **{name: {"a": 1} for name in ("rejected", "lost_rounds", "lost")},
            **dict.fromkeys(("updates", "versions", "wall_seconds"), 3),
            **dict.fromkeys(("kernel", "log_sha256", "stopped_by"), "text"),
        }
    ).encode(),
    "accuracy.csv": b"seconds,version,accuracy,loss\n0.0,1,0.5,0.25\n2.0,7,0.75,0.125\n",
    "clients.csv": b"client,source,examples,updates,accuracy,lost_rounds\na,,9,3,0.5,0\nb,,1,2,,1",
}
DTYPES = {"x": "float32", "n": "int64"}


def read_times(content: bytes) -> None:
    """Periods that are written again are the same, and one can ask for any time."""
    found = Availability.from_csv(in_file(content, "times.csv"), repeat_every=None)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("client", "start", "end"))
    traces = {name: _recorded(trace) for name, trace in found.traces.items()}
    for name, trace in traces.items():
        writer.writerows((name, *period) for period in _periods(trace))
        _ask(trace)
    again = Availability.from_csv(in_file(text.getvalue().encode(), "again.csv"), None)
    periods = {name: _periods(_recorded(trace)) for name, trace in again.traces.items()}
    assert periods == {name: _periods(trace) for name, trace in traces.items()}


def read_daily_times(content: bytes) -> None:
    """Periods that begin again every day."""
    found = Availability.from_csv(in_file(content, "daily.csv"))
    for trace in found.traces.values():
        _ask(_recorded(trace))


def read_traces(content: bytes) -> None:
    """A public trace: every user has periods, or a reason."""
    found = Availability.from_json(in_file(content, "traces.json"))
    assert found.traces
    for trace in found.traces.values():
        _ask(_recorded(trace))


def traces() -> Iterator[bytes]:
    messages = "2020-01-28 10:15:00\tscreen_lock\n2020-01-28 10:16:00\twifi\n" + (
        "2020-01-28 10:17:00\tbattery_charged_on\n2020-01-29 10:17:00\t80%"
    )
    users: dict[str, Any] = {
        "1": {"messages": messages},
        "2": {"trace_start": 0, "trace_end": 1e5, "ready_time": [[0, 10], [20.5, 30]]},
        "3": {"active": [0, 50], "inactive": [10, 60], "finish_time": 100},
    }
    yield json.dumps(users).encode()
    for name, record in users.items():
        yield json.dumps({name: record}).encode()


def read_recorded_hangs(content: bytes) -> None:
    """Hangs that are written again are the same."""
    hangs = read_hangs(in_file(content, "hangs.csv"))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("client", "round", "hang"))
    writer.writerows((*key, hang) for key, hang in hangs.items())
    assert read_hangs(in_file(text.getvalue().encode(), "again.csv")) == hangs


def read_npz(content: bytes) -> None:
    """A column of numbers or texts that is written again is the same."""
    column = read_column(in_file(content, "a.npz"), "y", "labels")
    again = io.BytesIO()
    np.savez(again, y=column)
    _check_same(read_column(in_file(again.getvalue(), "again.npz"), "y", "labels"), column)


def npzs() -> Iterator[bytes]:
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, y=np.arange(5), x=np.zeros((2, 2)))
        yield file.getvalue()
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive, archive.open("y.npy", "w") as entry:
        np.save(entry, np.array(["a", "bc"]))
    yield file.getvalue()


def read_labels(content: bytes) -> None:
    """A column of a CSV file is one of numbers or of texts."""
    column = read_column(in_file(content, "labels.csv"), "y", "labels")
    assert column.dtype.kind in "iU"
    assert column.ndim == 1


def read_model(content: bytes) -> None:
    """A model that is loaded and saved again is the same; a refused one changes nothing."""
    module, before = _module(), _module().state_dict()
    path = in_file(content, "m.safetensors")
    try:
        load_model(module, path)
    except Exception:
        assert all(torch.equal(t, before[name]) for name, t in module.state_dict().items())
        raise
    again = _module()
    load_model(again, _saved(module))
    for name, tensor in module.state_dict().items():
        assert tensor.numpy().tobytes() == again.state_dict()[name].numpy().tobytes()


def models() -> Iterator[bytes]:
    yield _saved(_module()).read_bytes()
    yield _saved(nn.Linear(2, 3)).read_bytes()


def read_data(content: bytes) -> None:
    """Arrays of fetched data that are written again are the same."""
    arrays, names = read_arrays(in_file(content, "data"), DTYPES)
    path = in_file(b"", "again")
    write_arrays(path, arrays, names, "fuzz")
    again, same_names = read_arrays(path, DTYPES)
    assert names == same_names
    for key, array in arrays.items():
        _check_same(again[key], array)


def data_files() -> Iterator[bytes]:
    path = in_file(b"", "seed")
    arrays: Arrays = {"x": np.ones((2, 3), np.float32), "n": np.arange(2)}
    write_arrays(path, arrays, ["a", "b"], "fuzz")
    yield path.read_bytes()


def read_writers(content: bytes) -> None:
    """A compact file of FEMNIST, whose offsets must divide its images."""
    Writers.read(in_file(content, "writers"))


def writers() -> Iterator[bytes]:
    path = in_file(b"", "seed")
    read_leaf_writers(
        _leaf_folder(next(leaf_shards()), {"a": {"x": [image(1)], "y": [1]}}, "femnist")
    ).write(path, "fuzz")
    yield path.read_bytes()


def read_leaf(content: bytes) -> None:
    """A shard of LEAF's FEMNIST."""
    read_leaf_writers(_leaf_folder(content, {"a": {"x": [image(1)], "y": [1]}}, "femnist"))


def read_leaf_text(content: bytes) -> None:
    """A shard of LEAF's Shakespeare."""
    x, y = zip(*windows(TEXT), strict=True)
    read_leaf_roles(_leaf_folder(content, {"a": {"x": [x[-1]], "y": [y[-1]]}}, "text"))


def leaf_shards() -> Iterator[bytes]:
    small = [0.5] * 784
    yield json.dumps(shard({"a": {"x": [small], "y": [1]}})).encode()


def leaf_texts() -> Iterator[bytes]:
    x, y = zip(*windows(TEXT)[:3], strict=True)
    yield json.dumps(shard({"a": {"x": x, "y": y}})).encode()


def read_role_texts(content: bytes) -> None:
    """A file of roles and their texts."""
    read_roles(in_file(content, "roles.json"))


def read_settings(content: bytes) -> None:
    """A file of settings, which are then checked one by one."""
    run_settings(read_config(in_file(content, "settings.toml")))


def read_begun_run(content: bytes) -> None:
    """What `asyncfeded resume` reads first."""
    folder = in_file(b"", "x").parent / "out"
    (folder / CHECKPOINT).mkdir(parents=True, exist_ok=True)
    (folder / CHECKPOINT / BEGUN_FILE).write_bytes(content)
    read_begun(folder)


def read_stored_run(content: bytes) -> None:
    """A run in the store of a sweep or of the paper."""
    store = RunStore(in_file(b"", "x").parent / "store")
    (store.folder / "0123456789abcdef.json").write_bytes(content)
    store.get("0123456789abcdef")


def read_results(content: bytes) -> None:
    """The files of a finished run; the first byte says which of them this is."""
    folder = in_file(b"", "x").parent / "finished"
    folder.mkdir(exist_ok=True)
    for name, sound in RESULTS.items():
        (folder / name).write_bytes(sound)
    (folder / list(RESULTS)[content[0] % len(RESULTS) if content else 0]).write_bytes(content[1:])
    read_result(folder)


def results() -> Iterator[bytes]:
    for number, content in enumerate(RESULTS.values()):
        yield bytes([number]) + content


def one(content: bytes) -> Callable[[], Iterator[bytes]]:
    """A single input to begin with."""
    return lambda: iter((content,))


def _recorded(trace: object) -> RecordedPeriods:
    assert isinstance(trace, RecordedPeriods)
    return trace


def _periods(trace: RecordedPeriods) -> list[tuple[float, float]]:
    return list(zip(trace._starts, trace._ends, strict=True))


def _ask(trace: RecordedPeriods) -> None:
    for seconds in (0.0, 0.3, 1e4, 1e9):
        period = trace.upcoming(seconds)
        assert period is None or (period.end > seconds and period.start <= period.end)


def _check_same(found: Column, given: Column) -> None:
    assert (found.dtype, found.shape) == (given.dtype, given.shape)
    assert found.tobytes() == given.tobytes()


def _module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))


def _saved(module: nn.Module) -> Path:
    path = in_file(b"", "saved.safetensors")
    save_module(module, path)
    return path


def _leaf_folder(content: bytes, test: dict[str, dict[str, Any]], name: str) -> Path:
    folder = in_file(b"", "x").parent / name
    write_side(folder, "test", 0, test)
    write_side(folder, "train", 0, {}).write_bytes(content)
    return folder
