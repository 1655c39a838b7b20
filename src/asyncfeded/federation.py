"""Who takes part in a run and what is measured, resolved once; a world carries it out."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import nn

from asyncfeded.client_data import WHOLE
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.metrics import ACCURACY
from asyncfeded.core.rule import AnyRule, Guard
from asyncfeded.core.server import Server
from asyncfeded.core.vectors import Vector
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.device import find_device
from asyncfeded.learning.evaluation import Evaluator, Metric
from asyncfeded.learning.flat import FlatModule
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
from asyncfeded.runtime.world import Setup, World
from asyncfeded.store.log import EventLog


@dataclass(frozen=True, slots=True)
class Federation:
    """A module, the clients' training and test data, a rule, and all that decides a run.

    `settings` describe the run in its summary; `describe` says what is known of a client before
    anything is heard of it.
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

    def run(self) -> Result:
        """Train the module in place; return what was measured.

        Whatever ends the run early is raised with the result until then as its attribute `result`;
        the module has the last version in any case.
        """
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
        server = Server(
            trainer.initial,
            self.rule,
            guards=self.guards,
            history=VersionHistory() if self.history is None else self.history,
            trained=trainer.schema.trained,
            exact=trainer.schema.exact,
            population=len(self.train),
        )
        setup = Setup(
            recipe=recipe,
            make_measure=partial(_measure_of, make_evaluator),
            sizes=each(self.train, len),
            steps_per_epoch=self._steps_per_epoch(),
            num_parameters=trainer.schema.size,
            seconds=self.seconds,
            seed=self.seed,
        )
        result = self._begin_result()
        control = Run(
            server,
            self.seconds,
            partial(_save, deepcopy(self.module)),
            _of_clients(make_evaluator, self.test),
            self.settings,
        )
        event_log = next((c for c in self.callbacks if isinstance(c, EventLog)), EventLog())
        observers: list[Callable[[Event], object]] = [
            result.add,
            *(partial(_call, c, control) for c in self.callbacks),
        ]
        if event_log not in self.callbacks:
            observers.insert(0, event_log.write)
        started = time.perf_counter()
        try:
            with one_blas_thread(), self.world.open(setup) as opened, ExitStack() as stack:
                for callback in self.callbacks:
                    if isinstance(callback, AbstractContextManager):
                        stack.enter_context(callback)
                transport, evaluate, selection = opened
                every = self.evaluate_every
                for event in run(
                    server, transport, self.seconds, evaluate, every, selection, control
                ):
                    for observe in observers:
                        observe(event)
        except BaseException as error:
            result.end_early(error)
            raise
        finally:
            wall_seconds = time.perf_counter() - started
            result.close(server.version, event_log.sha256, wall_seconds)
            trainer.load(server.parameters)
        if WHOLE not in self.test:
            of_each = make_evaluator().of_each(server.parameters)
            result.set_client_accuracies({n: m.get(ACCURACY) for n, m in of_each.items()})
        return result

    def _steps_per_epoch(self) -> Mapping[str, int] | None:
        """How many mini-batches an epoch of each client has, if K counts these."""
        if self.training.unit != "steps":
            return None
        size = self.training.batch_size
        return each(self.train, lambda examples: len(batch_sizes(len(examples), size)))

    def _begin_result(self) -> Result:
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
    if WHOLE in test:
        return None
    evaluator = cache(make_evaluator)
    return lambda parameters: evaluator().of_each(parameters)
