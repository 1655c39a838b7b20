"""Who takes part in a run and what is measured, resolved once; a world carries it out."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import nn

from asyncfeded.callbacks.checkpoint import Checkpoint, SavedRun
from asyncfeded.client_data import WHOLE
from asyncfeded.core.errors import SettingError
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.metrics import ACCURACY
from asyncfeded.core.rule import AnyRule, Guard
from asyncfeded.core.server import Server
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.device import find_device
from asyncfeded.learning.evaluation import Evaluator, Metric
from asyncfeded.learning.flat import FlatModule, Schema
from asyncfeded.learning.local_training import CPU, LocalTraining
from asyncfeded.learning.recipe import TrainerRecipe
from asyncfeded.learning.reproducible import one_blas_thread
from asyncfeded.learning.rounds import batch_sizes
from asyncfeded.learning.saving import save_module
from asyncfeded.learning.trainer import Loss
from asyncfeded.on_demand import OnDemand, each
from asyncfeded.result import ClientFigures, Result
from asyncfeded.runtime.control import Callback, Run
from asyncfeded.runtime.evaluation import Evaluation, Measure
from asyncfeded.runtime.events import Event
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.saved import Savable, Saved, restoring, savable
from asyncfeded.runtime.world import Setup, World
from asyncfeded.store.log import EventLog
from asyncfeded.store.states import VERSION, check_same_run, identity_of, server_state
from asyncfeded.version import __version__


@dataclass(frozen=True, slots=True)
class Federation:
    """A module, the clients' training and test data, a rule, and all that decides a run.

    `settings` describe the run in its summary; `describe` makes the figures of a client before its
    first event. `write` is given the result of a run that has reached its end; what was saved of
    the run is removed after that.
    """

    module: nn.Module
    train: dict[str, TensorExamples] | OnDemand[TensorExamples]
    test: Mapping[str, TensorExamples]
    rule: AnyRule
    world: World
    training: LocalTraining
    seconds: float
    loss: Loss
    metrics: Mapping[str, Metric] | None = None
    callbacks: Sequence[Callback] = ()
    evaluate_every: float = 2.0
    seed: int = 0
    guards: Sequence[Guard] = ()
    history: VersionHistory | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    describe: Callable[[str], ClientFigures] | None = None
    resume: Path | None = None
    write: Callable[[Result], object] = lambda _: None

    def run(self) -> Result:
        """Train the module in place; return what was measured.

        Whatever ends the run early is raised with the result until then as its attribute `result`;
        the module has the last version in any case.
        """
        checkpoint = self._checkpoint()
        if checkpoint is None:
            result = self._carry_out(None, None)
            self.write(result)
            return result
        with checkpoint.opened(self.resume is not None) as saved:
            result = self._carry_out(checkpoint, saved)
            self.write(result)
            return result

    def _checkpoint(self) -> Checkpoint | None:
        """What saves the run: the callback that was given, or one for the folder to resume."""
        given = next((c for c in self.callbacks if isinstance(c, Checkpoint)), None)
        if self.resume is None:
            return given
        if given is not None and given.folder.absolute() != self.resume.absolute():
            raise SettingError(
                f"resume must be the folder of the Checkpoint that is given, "
                f"{str(given.folder)!r}; given {str(self.resume)!r}"
            )
        return Checkpoint(self.resume) if given is None else given

    def _carry_out(self, checkpoint: Checkpoint | None, to_resume: SavedRun | None) -> Result:
        saved = None if to_resume is None else to_resume.state
        device = self.training.device
        find_device(device)  # before anything begins
        make_evaluator = partial(
            _evaluator, deepcopy(self.module), self.test, self.loss, self.metrics, device
        )
        recipe = TrainerRecipe(
            deepcopy(self.module), self.train, self.training, self.loss, self.seed
        )
        # The user's module trains nowhere: it is given the last version, on the CPU.
        on_cpu = replace(self.training, device=CPU)
        trainer = replace(recipe, module=self.module, training=on_cpu)()
        identity = self.identity(trainer.schema)
        if saved is not None:
            check_same_run(saved, identity)
        server = self._server(trainer.initial, trainer.schema, saved)
        setup = Setup(
            recipe=recipe,
            make_measure=partial(_measure_of, make_evaluator),
            sizes=each(self.train, len),
            steps_per_epoch=self._steps_per_epoch(),
            num_parameters=trainer.schema.size,
            seconds=self.seconds,
            seed=self.seed,
            resumed=None if saved is None else saved["world"],
            begins=0.0 if to_resume is None else to_resume.seconds,
        )
        result = self.begin_result()
        control = Run(
            server,
            self.seconds,
            partial(_save, deepcopy(self.module)),
            _of_clients(make_evaluator, self.test),
            self.settings,
        )
        callbacks = self._all_callbacks(checkpoint)
        event_log = next(c for c in callbacks if isinstance(c, EventLog))
        observers: list[Callable[[Event], object]] = [
            result.add,
            *(partial(_call, c, control) for c in callbacks),
        ]
        parts = {"result": result, **_savable(callbacks)}
        if saved is not None:
            for name, part in parts.items():
                with restoring(name):
                    if name in saved["parts"]:
                        part.restore(saved["parts"][name])
        earlier_seconds = 0.0 if saved is None else float(saved["wall_seconds"])
        started = time.perf_counter()
        try:
            with one_blas_thread(), self.world.open(setup) as opened, ExitStack() as stack:
                for callback in callbacks:
                    if isinstance(callback, AbstractContextManager):
                        stack.enter_context(callback)
                transport = opened.transport
                if checkpoint is not None:
                    opened.state()  # what cannot be saved is refused at once, not after a minute
                    if self.world.clock == "real":
                        kept = checkpoint.keeping_signals(transport, server)
                        transport = stack.enter_context(kept)
                control.parts |= {
                    "run": lambda: identity,
                    "world": opened.state,
                    "parts": lambda: {name: part.state() for name, part in parts.items()},
                    "wall_seconds": lambda: earlier_seconds + time.perf_counter() - started,
                }
                for event in run(
                    server,
                    transport,
                    self.seconds,
                    opened.evaluate,
                    self.evaluate_every,
                    opened.selection,
                    control,
                    saved,
                ):
                    for observe in observers:
                        observe(event)
        except BaseException as error:
            result.end_early(error)
            raise
        finally:
            wall_seconds = earlier_seconds + time.perf_counter() - started
            result.close(server.version, event_log.sha256, wall_seconds)
            trainer.load(server.parameters)
        if self.test and WHOLE not in self.test:
            of_each = make_evaluator().of_each(server.parameters)
            result.set_client_accuracies({n: m.get(ACCURACY) for n, m in of_each.items()})
        return result

    def _server(self, initial: Vector, schema: Schema, saved: Saved | None) -> Server:
        """A server with the initial model, or the one that was saved."""
        if saved is not None:
            return Server.restore(server_state(saved["server"]), self.rule, guards=self.guards)
        return Server(
            initial,
            self.rule,
            guards=self.guards,
            history=VersionHistory() if self.history is None else self.history,
            trained=schema.trained,
            exact=schema.exact,
            population=len(self.train) or None,  # on Flower, nobody knows
        )

    def _all_callbacks(self, checkpoint: Checkpoint | None) -> list[Callback]:
        """The callbacks with exactly one log, which comes first unless it was given a place.

        A run that can be resumed keeps its log in a file, since it goes on with the digest of all.
        The checkpoint comes last: what it saves, all others have heard.
        """
        callbacks = [c for c in self.callbacks if not isinstance(c, Checkpoint)]
        logs = [c for c in callbacks if isinstance(c, EventLog)]
        if checkpoint is None:
            return callbacks if logs else [EventLog(), *callbacks]
        if not (logs and logs[0].has_file):
            callbacks = [EventLog(checkpoint.log_path), *(c for c in callbacks if c not in logs)]
        return [*callbacks, checkpoint]

    def identity(self, schema: Schema) -> dict[str, Any]:
        """What must be the same when a run goes on in another process."""
        described = {
            VERSION: __version__,
            **_fields_of(self.world),
            **self.settings,
            **self.training.settings,
            "kernel": self.training.kernel,
            "seconds": self.seconds,
            "evaluate_every": self.evaluate_every,
            "seed": self.seed,
            "clients": len(self.train),
            "model": schema.sha256,
            "clock": self.world.clock,
        }
        return identity_of(described)

    def _steps_per_epoch(self) -> Mapping[str, int] | None:
        """How many mini-batches an epoch of each client has, if K counts these."""
        if self.training.unit != "steps":
            return None
        size = self.training.batch_size
        return each(self.train, lambda examples: len(batch_sizes(len(examples), size)))

    def begin_result(self) -> Result:
        """A result that knows the clients, of very many only those who test the model."""
        result = Result(
            self.settings, self.world.clock, self.training.kernel, self.describe or self._figures
        )
        known = self.train if isinstance(self.train, dict) else self.test
        for name in known:
            if name != WHOLE:
                result.of_client(name)
        return result

    def _figures(self, name: str) -> ClientFigures:
        """The size of a client's data, unless they would have to be made to know it."""
        return ClientFigures(examples=len(self.train[name]) if isinstance(self.train, dict) else 0)


def _fields_of(world: Any) -> dict[str, Any]:
    """What a world was made with, by name, if it says so as a dataclass does."""
    return {f.name: getattr(world, f.name) for f in fields(world)} if is_dataclass(world) else {}


def _savable(callbacks: Sequence[Callback]) -> dict[str, Savable]:
    """The callbacks that have a state, named by their kind and their place among these."""
    found: dict[str, Savable] = {}
    for callback in callbacks:
        part = savable(callback)
        if part is not None:
            kind = type(part).__name__
            number = sum(name.startswith(f"{kind} ") for name in found)
            found[f"{kind} {number}"] = part
    return found


def _call(callback: Callback, control: Run, event: Event) -> None:
    callback(event, control)


def _evaluator(
    module: nn.Module,
    test: Mapping[str, TensorExamples],
    loss: Loss,
    metrics: Mapping[str, Metric] | None,
    device: str,
) -> Evaluator:
    """An evaluator with a module of its own, which no other evaluator takes over."""
    return Evaluator(deepcopy(module), test, loss, metrics, device=device)


def _measure_of(make_evaluator: Callable[[], Evaluator]) -> Measure:
    """An evaluation as the loop asks for it."""
    evaluator = make_evaluator()
    return lambda parameters: Evaluation(evaluator(parameters))


def _save(spare: nn.Module, parameters: Vector, path: Path) -> None:
    """Write parameters to a file, by way of a module that nothing else uses."""
    FlatModule(spare).load(parameters)
    save_module(spare, path)


def _of_clients(
    make_evaluator: Callable[[], Evaluator], test: Mapping[str, TensorExamples]
) -> Callable[[Vector], Mapping[str, Mapping[str, float]]] | None:
    """Measures parameters on the test examples of each client, if clients have their own."""
    if WHOLE in test or not test:
        return None
    evaluator = cache(make_evaluator)
    return lambda parameters: evaluator().of_each(parameters)
