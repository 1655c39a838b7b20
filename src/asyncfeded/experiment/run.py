"""One run from its settings, with its files."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from asyncfeded import randomness
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.server import Server
from asyncfeded.data.federated import Examples, FederatedData
from asyncfeded.experiment import worlds
from asyncfeded.experiment.federate import KEPT_DATASETS, federate
from asyncfeded.experiment.hyperparameters import build_rule
from asyncfeded.experiment.result import Result
from asyncfeded.experiment.settings import RunSettings
from asyncfeded.experiment.tasks import DataChoice, Task, Widths, find_task, split_of
from asyncfeded.learning.chain import read_chain
from asyncfeded.learning.datasets import TensorExamples, as_examples
from asyncfeded.learning.recipe import Kernel
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.rounds import LocalTraining
from asyncfeded.learning.saving import MODEL_FILE, save_module
from asyncfeded.on_demand import ClientNames, each, names_of
from asyncfeded.runtime.control import Callback
from asyncfeded.simulation.authors_draws import authors_hangs
from asyncfeded.simulation.devices import DeviceModel
from asyncfeded.simulation.profiles import (
    BYTES_PER_SECOND,
    PAPER_MACHINES,
    PAPER_ROUND_SECONDS,
    heterogeneous_devices,
    paper_devices,
)
from asyncfeded.simulation.suspension import read_hangs
from asyncfeded.store.log import EventLog

LOG_FILE = "events.jsonl"
MOST_PARAMETERS = 1_000_000_000


def run_experiment(
    settings: RunSettings,
    callbacks: Sequence[Callback] = (),
    data: FederatedData | None = None,
) -> Result:
    """Carry out one run; write its files if the settings name a folder for them.

    A run that ends early has the same files; its summary says that it did not finish.
    `data` are the settings' own, where they have been loaded already.
    """
    task = find_task(settings.task)
    rule = task_rule(task, settings)
    training = _training(task, settings)
    data = load_data(settings) if data is None else data
    module = _initial_module(task, settings.widths or task.widths, settings.seed)
    carry_out = partial(
        federate,
        module,
        each(data.train, as_tensors, KEPT_DATASETS),
        rule=rule,
        test={name: as_tensors(data.test[name]) for name in _test_clients(data, settings)},
        seconds=settings.seconds,
        seed=settings.seed,
        workers=settings.workers,
        at_work=settings.at_work,
        kernel=kernel_of(module, settings),
        training=training,
        devices=_devices(task, settings, data),
        memberships=settings.memberships,
        max_staleness=settings.max_staleness,
        history=settings.history,
        sketch_buckets=settings.sketch_buckets,
        evaluate_every=settings.evaluate_every,
        callbacks=[EventLog(None if settings.out is None else settings.out / LOG_FILE), *callbacks],
        on=settings.on,
        workers_on=settings.workers_on,
        ray_address=settings.ray_address,
        patience=settings.patience,
        settings=resolved(settings, data),
    )
    title = title_of(settings, rule.name)
    try:
        result = carry_out()
    except BaseException as error:
        early = getattr(error, "result", None)
        if isinstance(early, Result) and early.begun:
            _name_clients(early, data)
            for write in _writers(module, early, settings.out, title):
                with suppress(FileError):  # what ended the run is the error to be seen
                    write()
        raise
    _name_clients(result, data)
    for write in _writers(module, result, settings.out, title):
        write()
    return result


def title_of(settings: RunSettings, *words: str) -> str:
    """The title of a plot: the task, these words, and P where devices are imposed on clients."""
    task = find_task(settings.task)
    imposed = _profile(task, settings) != "real"
    return ", ".join([task.title, *words, *([f"P = {settings.suspension:g}"] if imposed else [])])


def _name_clients(result: Result, data: FederatedData) -> None:
    """Say of each client whose data it has, and how many."""
    for name, client in result.clients.items():
        client.source = data.sources.get(name, "")
        client.examples = data.sizes[name]


def _writers(
    module: nn.Module, result: Result, folder: Path | None, title: str
) -> list[Callable[[], None]]:
    """What writes the files of a run, the model first and the summary last."""
    if folder is None:
        return []
    return [partial(save_module, module, folder / MODEL_FILE), partial(result.write, folder, title)]


def session(settings: RunSettings) -> AbstractContextManager[None]:
    """Be connected to a Ray, where the settings need one: runs inside share it."""
    return worlds.session("ray" in (settings.on, settings.workers_on), settings.ray_address)


def resolved(settings: RunSettings, data: FederatedData) -> dict[str, Any]:
    """The settings of a run with the task's own values in the places that were left open."""
    task = find_task(settings.task)
    widths = settings.widths or task.widths
    return {
        **settings.model_dump(mode="json"),
        **asdict(_training(task, settings)),
        "widths": list(widths),
        "devices": _profile(task, settings),
        "split": split_of(_data_choice(task, settings)) if task.has_splits else settings.split,
        "kernel": kernel_of(_shapes(task, widths), settings),
        "data_sha256": data.sha256,
        "hyperparameters": dict(task_rule(task, settings).settings),
    }


def check(settings: RunSettings) -> None:
    """Find what is wrong with a run before anything is written or begun."""
    task = find_task(settings.task)
    rule = task_rule(task, settings)
    Server(np.zeros(1, np.float32), rule, history=VersionHistory(settings.history))
    _training(task, settings)
    _profile(task, settings)
    widths = settings.widths or task.widths
    module = _shapes(task, widths)
    kernel_of(module, settings)
    count = sum(parameter.numel() for parameter in module.parameters())
    if count > MOST_PARAMETERS:
        raise SettingError(
            f"widths must make a model of at most {MOST_PARAMETERS:,} parameters; "
            f"{widths[0]},{widths[1]} make one of {count:,}"
        )


def load_data(settings: RunSettings) -> FederatedData:
    """The data of a run."""
    task = find_task(settings.task)
    return task.make_data(_data_choice(task, settings))


def _data_choice(task: Task, settings: RunSettings) -> DataChoice:
    """Which data a run uses; clients have as many as in the paper where its devices are used."""
    paper = _profile(task, settings) == task.paper_devices
    return DataChoice(
        settings.clients,
        settings.data_seed,
        settings.min_examples,
        settings.max_examples,
        settings.data_dir,
        task.paper_sizes if paper else None,
        None if settings.split == "auto" else settings.split,
    )


def task_rule(task: Task, settings: RunSettings) -> AnyRule:
    """The rule with the task's hyperparameters, and those given in their place."""
    chosen = {**task.rule_settings.get(settings.rule, {}), **settings.hyperparameters}
    return build_rule(settings.rule, chosen)


def _initial_module(task: Task, widths: Widths, seed: int) -> nn.Module:
    """The task's model, with initial weights that depend on the seed alone."""
    with reproducible(randomness.key(seed, "initial-model")):
        return task.make_module(widths)


def _shapes(task: Task, widths: Widths) -> nn.Module:
    """The task's model without memory for its parameters."""
    with torch.device("meta"):
        return task.make_module(widths)


def kernel_of(module: nn.Module, settings: RunSettings) -> Kernel:
    """What trains this module: as the settings say, or compiled code where there is some."""
    if settings.kernel == "torch":
        return "torch"
    try:
        read_chain(module)
    except SettingError:
        if settings.kernel == "compiled":
            raise
        return "torch"
    return "compiled"


def _test_clients(data: FederatedData, settings: RunSettings) -> list[str]:
    """The clients whose test data measure the model: all, or a draw of very many."""
    names = names_of(data.test)
    if len(names) <= settings.test_clients:
        return list(names)
    draw = randomness.generator(settings.data_seed, "test-clients")
    places = draw.choice(len(names), settings.test_clients, replace=False)
    return [names[place] for place in sorted(places)]


def _training(task: Task, settings: RunSettings) -> LocalTraining:
    given = settings.model_dump(include={field.name for field in fields(LocalTraining)})
    return replace(task.training, **{k: v for k, v in given.items() if v is not None})


def _profile(task: Task, settings: RunSettings) -> str:
    """The name of the devices to use; the paper's are for its own number of clients."""
    paper = task.paper_devices
    profile: str = settings.devices
    if profile == "auto":
        fits = settings.clients == len(PAPER_ROUND_SECONDS[paper])
        profile = paper if fits else "heterogeneous"
    elif profile not in ("heterogeneous", "real"):
        paper_devices(profile, ClientNames(settings.clients))
    if settings.hang_draws == "authors" and profile not in PAPER_MACHINES:
        raise SettingError(
            f"hang_draws 'authors' needs the paper's devices, of 10 clients; the devices are "
            f"{profile!r}"
        )
    return profile


def _devices(task: Task, settings: RunSettings, data: FederatedData) -> DeviceModel | None:
    profile = _profile(task, settings)
    if profile == "real":
        return None
    if profile == "heterogeneous":
        model = DeviceModel(
            heterogeneous_devices(data.sizes, settings.seed), bytes_per_second=BYTES_PER_SECOND
        )
    else:
        barrier = task_rule(task, settings).on_round_end is not None
        devices = paper_devices(profile, list(data.train), barrier, settings.suspension)
        model = DeviceModel(devices, jitter=PAPER_MACHINES[profile].jitter(barrier))
    recorded = None
    if settings.hangs_from is not None:
        recorded = read_hangs(settings.hangs_from)
    elif settings.hang_draws == "authors":
        recorded = authors_hangs(list(model.devices), settings.suspension)
    return replace(
        model,
        seed=settings.seed,
        start_up_seconds=settings.start_up,
        suspension=settings.suspension if recorded is None else 0.0,
        hangs=settings.hangs,
        recorded=recorded,
    )


def as_tensors(examples: Examples) -> TensorExamples:
    """A client's examples for torch."""
    tensors = as_examples((examples.x, examples.y))
    return tensors if examples.per_epoch is None else replace(tensors, per_epoch=examples.per_epoch)
