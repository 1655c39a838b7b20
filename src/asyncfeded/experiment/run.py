"""A run of the command line: its settings, resolved once, its data, its world and its files."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from asyncfeded import own_code, randomness
from asyncfeded.availability.availability import Availability
from asyncfeded.callbacks.checkpoint import Checkpoint, is_saved
from asyncfeded.client_data import KEPT_DATASETS
from asyncfeded.cluster.ray_world import Ray, RayWorkers
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.server import Server
from asyncfeded.data.federated import Examples, FederatedData
from asyncfeded.experiment.begun import saved_in
from asyncfeded.experiment.hyperparameters import build_rule
from asyncfeded.experiment.model_shape import kernel_for, shape_of
from asyncfeded.experiment.settings import RunSettings
from asyncfeded.federation import Federation
from asyncfeded.guards import bounded_staleness
from asyncfeded.learning.datasets import TensorExamples, as_examples
from asyncfeded.learning.device import find_device
from asyncfeded.learning.local_training import Kernel, LocalTraining
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.learning.saving import MODEL_FILE, save_module
from asyncfeded.on_demand import ClientNames, each, names_of
from asyncfeded.result import ClientFigures, Result
from asyncfeded.runtime.control import Callback
from asyncfeded.runtime.membership import Membership
from asyncfeded.runtime.world import World
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
from asyncfeded.simulation.virtual_world import Virtual
from asyncfeded.store.log import EventLog
from asyncfeded.store.runs import run_key
from asyncfeded.store.states import identity_of
from asyncfeded.tasks.own_task import takes
from asyncfeded.tasks.paper_task import DataChoice, RunnableTask, Widths
from asyncfeded.tasks.registry import find_task

LOG_FILE = "events.jsonl"
MOST_PARAMETERS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """A run's settings, with the task's own values for those that were not given."""

    settings: RunSettings
    task: RunnableTask
    rule: AnyRule
    training: LocalTraining
    widths: Widths
    devices: str
    """The name of the devices; `real` for none that are imposed."""

    @property
    def data_choice(self) -> DataChoice:
        """Which data are used; with the paper's devices, clients have as many as in the paper."""
        settings = self.settings
        return DataChoice(
            settings.clients,
            settings.data_seed,
            settings.min_examples,
            settings.max_examples,
            settings.data_dir,
            self.task.paper_sizes if self.devices == self.task.paper_devices else None,
            None if settings.split == "auto" else settings.split,
        )

    def load_data(self) -> FederatedData:
        """The data of the run."""
        return self.task.make_data(self.data_choice)

    def known(self, data: FederatedData | None = None) -> dict[str, Any]:
        """What is known of the run before it begins, as the summary lists it.

        Without the data, their digest is left out.
        """
        task, settings = self.task, self.settings
        return {
            **settings.model_dump(mode="json"),
            **self.training.settings,
            "widths": list(self.widths),
            "devices": self.devices,
            "split": task.choose_split(self.data_choice) if task.choose_split else settings.split,
            "kernel": self.training.kernel,
            **({} if data is None else {"data_sha256": data.sha256}),
            "hyperparameters": dict(self.rule.settings),
        }

    def key(self, data: FederatedData) -> str:
        """A name that tells the run from all that may give something else."""
        return run_key(identity_of(self.known(data)))

    def title(self, *words: str) -> str:
        """The title of a plot: the task, these words, and P where devices are imposed."""
        hangs = [f"P = {self.settings.suspension:g}"] if self.devices != "real" else []
        return ", ".join([self.task.title, *words, *hangs])

    def connection(self) -> AbstractContextManager[None]:
        """Be connected to a Ray, if the run needs one; runs inside share it."""
        return self._world(None, None, None).connection()

    def run(
        self,
        callbacks: Sequence[Callback] = (),
        data: FederatedData | None = None,
        saved: Path | None = None,
    ) -> Result:
        """Carry out the run; write its files if the settings name a folder for them.

        A run that ends early has the same files; its summary says that it did not finish.
        `data` are the run's data, if they were loaded before.

        The run is saved now and then to the folder `saved`, or to one inside that of its files; if
        it was saved there by an earlier process, it goes on.
        """
        settings = self.settings
        if saved is None and settings.out is not None:
            saved = saved_in(settings.out)
        every = settings.checkpoint_every
        checkpoints = [] if saved is None or every == 0 else [Checkpoint(saved, every)]
        data = self.load_data() if data is None else data
        module = initial_module(self.task, self.widths, settings.seed)
        title = self.title(self.rule.name)
        limit = settings.max_staleness
        log = EventLog(None if settings.out is None else settings.out / LOG_FILE)
        federation = Federation(
            module,
            each(data.train, as_tensors, KEPT_DATASETS),
            {name: as_tensors(data.test[name]) for name in self._test_clients(data)},
            self.rule,
            self._world(
                self._device_model(data),
                settings.memberships(names_of(data.train)),
                self._availability(data),
            ),
            self.training,
            settings.seconds,
            self.task.loss or nn.functional.cross_entropy,
            metrics=self.task.metrics,
            callbacks=[log, *callbacks, *checkpoints],
            evaluate_every=settings.evaluate_every,
            seed=settings.seed,
            guards=[] if limit is None else [bounded_staleness(limit)],
            history=VersionHistory(settings.history, settings.sketch_buckets),
            settings=self.known(data),
            describe=lambda name: ClientFigures(data.sources.get(name, ""), data.sizes[name]),
            resume=next((c.folder for c in checkpoints if is_saved(c.folder)), None),
            write=lambda result: _write(_writers(module, result, settings.out, title)),
        )
        try:
            result = federation.run()
        except BaseException as error:
            early = getattr(error, "result", None)
            if isinstance(early, Result) and early.begun:
                for write in _writers(module, early, settings.out, title):
                    with suppress(FileError):  # what ended the run is the error to be seen
                        write()
            raise
        for checkpoint in checkpoints:
            with suppress(OSError):  # there is something else in it
                checkpoint.folder.rmdir()
        return result

    def _world(
        self,
        devices: DeviceModel | None,
        memberships: Sequence[Membership] | None,
        availability: Availability | None,
    ) -> World:
        settings = self.settings
        if settings.on == "ray":
            address, patience = settings.ray_address, settings.patience
            return Ray(address, devices, memberships, patience, availability)
        on_ray = settings.workers_on == "ray"
        return Virtual(
            devices,
            workers=(
                RayWorkers(settings.workers, settings.ray_address) if on_ray else settings.workers
            ),
            at_work=settings.at_work,
            memberships=memberships,
            availability=availability,
        )

    def _availability(self, data: FederatedData) -> Availability | None:
        """When the clients are there; None for always."""
        settings = self.settings
        path = settings.availability
        if path is None:
            return None
        if path.suffix == ".json":
            read = Availability.from_json(path, settings.when_away)
        else:
            read = Availability.from_csv(path, settings.repeat_every or None, settings.when_away)
        return read.for_clients(names_of(data.train), settings.seed)

    def _test_clients(self, data: FederatedData) -> list[str]:
        """The clients whose test data measure the model: all, or a draw of very many."""
        names, most = names_of(data.test), self.settings.test_clients
        if len(names) <= most:
            return list(names)
        draw = randomness.generator(self.settings.data_seed, "test-clients")
        return [names[place] for place in sorted(draw.choice(len(names), most, replace=False))]

    def _device_model(self, data: FederatedData) -> DeviceModel | None:
        """The clients' devices; none where clients are as fast as their machines."""
        settings, name = self.settings, self.devices
        if name == "real":
            return None
        if name == "heterogeneous":
            usual = heterogeneous_devices(data.sizes, settings.seed)
            model = DeviceModel(usual, bytes_per_second=BYTES_PER_SECOND)
        else:
            barrier = self.rule.on_round_end is not None
            devices = paper_devices(name, list(data.train), barrier, settings.suspension)
            model = DeviceModel(devices, jitter=PAPER_MACHINES[name].jitter(barrier))
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


def resolve(settings: RunSettings) -> ResolvedRun:
    """Fill in what was not given; find what is wrong before anything begins."""
    task = find_task(settings.task, settings.clients, settings.data_seed)
    if task.own:
        _check_clients(settings)
    rule = task_rule(task, settings)
    Server(np.zeros(1, np.float32), rule, history=VersionHistory(settings.history))
    widths = settings.widths or task.widths
    count, no_chain = shape_of(task, widths)
    kernel = kernel_for(settings.kernel, no_chain, settings.device)
    training = _training(task, settings, kernel)
    find_device(training.device)
    if count > MOST_PARAMETERS:
        raise SettingError(
            f"widths must make a model of at most {MOST_PARAMETERS:,} parameters; "
            f"{','.join(map(str, widths))} make one of {count:,}"
        )
    return ResolvedRun(settings, task, rule, training, widths, _devices_name(task, settings))


def run_experiment(
    settings: RunSettings,
    callbacks: Sequence[Callback] = (),
    data: FederatedData | None = None,
    saved: Path | None = None,
) -> Result:
    """Resolve settings and carry out the run."""
    return resolve(settings).run(callbacks, data, saved)


def task_rule(task: RunnableTask, settings: RunSettings) -> AnyRule:
    """The rule with the task's hyperparameters, and those given in their place."""
    chosen = {**task.rule_settings.get(settings.rule, {}), **settings.hyperparameters}
    return build_rule(settings.rule, chosen)


def initial_module(task: RunnableTask, widths: Widths, seed: int) -> nn.Module:
    """The task's model, with initial weights that depend on the seed alone."""
    with reproducible(randomness.key(seed, "initial-model")):
        return task.make_module(widths)


def _check_clients(settings: RunSettings) -> None:
    """Refuse a number of clients that a user's task does not ask for."""
    factory = own_code.load_factory("task", settings.task)
    if factory and "clients" not in takes(factory) and "clients" in settings.model_fields_set:
        raise SettingError(
            f"clients must be left out for task {settings.task!r}, whose factory has no argument "
            f"'clients'; given {settings.clients}"
        )


def _training(task: RunnableTask, settings: RunSettings, kernel: Kernel) -> LocalTraining:
    names = {field.name for field in fields(LocalTraining)} - {"kernel"}
    given = settings.model_dump(include=names)
    chosen = {name: value for name, value in given.items() if value is not None}
    return replace(task.training, kernel=kernel, **chosen)


def _devices_name(task: RunnableTask, settings: RunSettings) -> str:
    """The name of the devices to use; the paper's are for its own number of clients."""
    paper = task.paper_devices
    name: str = settings.devices
    if name == "auto":
        fits = settings.clients == len(PAPER_ROUND_SECONDS.get(paper, ()))
        name = paper if fits else "heterogeneous"
    elif name not in ("heterogeneous", "real"):
        paper_devices(name, ClientNames(settings.clients))
    if settings.hang_draws == "authors" and name not in PAPER_MACHINES:
        raise SettingError(
            f"hang_draws 'authors' needs the paper's devices, of 10 clients; the devices are "
            f"{name!r}"
        )
    return name


def _writers(
    module: nn.Module, result: Result, folder: Path | None, title: str
) -> list[Callable[[], None]]:
    """What writes the files of a run, the model first and the summary last."""
    if folder is None:
        return []
    return [partial(save_module, module, folder / MODEL_FILE), partial(result.write, folder, title)]


def _write(writers: Sequence[Callable[[], None]]) -> None:
    for write in writers:
        write()


def as_tensors(examples: Examples) -> TensorExamples:
    """A client's examples for torch."""
    tensors = as_examples((examples.x, examples.y))
    return tensors if examples.per_epoch is None else replace(tensors, per_epoch=examples.per_epoch)


def load_data(settings: RunSettings) -> FederatedData:
    """The data of a run."""
    return resolve(settings).load_data()
