"""A Flower federation as a world, in real time."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import ClassVar

from flwr.serverapp import Grid

from asyncfeded.core.vectors import Vector
from asyncfeded.flower.codec import Codec
from asyncfeded.flower.evaluation import UnderWay
from asyncfeded.flower.flower_transport import FlowerTransport
from asyncfeded.flower.messages import Messages
from asyncfeded.flower.model import Layout
from asyncfeded.runtime.evaluation import Evaluation
from asyncfeded.runtime.world import Clock, OpenWorld, Setup


class Flower:
    """The nodes of a Flower run. With `measures`, the server measures on data of its own."""

    clock: ClassVar[Clock] = "real"

    def __init__(
        self, grid: Grid, messages: Messages, layout: Layout, measures: bool, evaluate_on: int
    ) -> None:
        self._grid = grid
        self._messages = messages
        self._layout = layout
        self._measures = measures
        self._evaluate_on = evaluate_on

    def connection(self) -> AbstractContextManager[None]:
        """Flower has connected this process already."""
        return nullcontext()

    @contextmanager
    def open(self, setup: Setup) -> Iterator[OpenWorld]:
        """Begin to look for nodes; evaluations on the server have a thread of their own."""
        transport = FlowerTransport(
            self._grid,
            Codec(self._layout),
            self._messages,
            setup.seconds,
            evaluate_on=self._evaluate_on,
            seed=setup.seed,
            begins=setup.begins,
        )
        measure = cache(setup.make_measure)
        with ThreadPoolExecutor(1, "evaluation") as thread:

            def measured(parameters: Vector) -> Evaluation:
                return measure()(parameters)

            def evaluate(parameters: Vector, _: float) -> UnderWay:
                here: Future[Evaluation] | None = None
                if self._measures:
                    here = thread.submit(measured, parameters)
                there = transport.evaluate(parameters) if self._evaluate_on else None
                return UnderWay(here, there, transport.wait_for)

            evaluates = self._measures or self._evaluate_on > 0
            yield OpenWorld(transport, evaluate if evaluates else None)
