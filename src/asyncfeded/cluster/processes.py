"""What runs in Ray's processes: a client's training, and the work of look-ahead workers.

A failure is returned as text instead of raised: an exception of the user's own may not survive the
way to another process.
"""

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from asyncfeded.core.messages import ClientUpdate, Train, TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation, Measure
from asyncfeded.runtime.jobs import TASK_VALUES, Order, ordered_task, trained
from asyncfeded.runtime.memory import keep_freed_memory

MakeTrain = Callable[[], Train]
"""Makes a client's training in the process where it is to happen: there its data are read."""

MakeMeasure = Callable[[], Measure]
"""Makes an evaluation in the process where it is to happen."""


class Imposed(NamedTuple):
    """What a client's device takes, in seconds; the process sleeps while its machine is faster.

    If the round is `lost`, the client trains nothing and sleeps all of it.
    """

    before: float = 0.0
    compute: float = 0.0
    after: float = 0.0
    lost: bool = False

    @property
    def total(self) -> float:
        """From the task's arrival to the update's sending."""
        return self.before + self.compute + self.after


NOTHING_IMPOSED = Imposed()


class Answer(NamedTuple):
    """A process's answer: an update and how long it really took, or what failed.

    Without either, the round was lost.
    """

    update: ClientUpdate | None
    busy_seconds: float
    failure: str | None = None


class ClientProcess:
    """One client: its data, its training, and the delays that its device would have."""

    def __init__(self, make_train: MakeTrain) -> None:
        keep_freed_memory()
        self._train = make_train()

    def train(self, parameters: Vector, order: Order) -> Answer:
        """Train from these parameters, with the delays that stand behind the task in the order."""
        delays: list[Any] = order[TASK_VALUES:]
        task, imposed = ordered_task(order, parameters), Imposed(*delays)
        if imposed.lost:
            time.sleep(imposed.total)
            return Answer(None, 0.0)
        time.sleep(imposed.before)
        answer = _answer(self._train, task)
        time.sleep(max(0.0, imposed.compute - answer.busy_seconds) + imposed.after)
        return answer


class WorkerProcess:
    """Trains for any client, and measures."""

    def __init__(self, recipes: tuple[MakeTrain | None, MakeMeasure | None]) -> None:
        keep_freed_memory()
        make_train, make_measure = recipes
        self._train = None if make_train is None else make_train()
        self._measure = None if make_measure is None else make_measure()

    def train(self, parameters: Vector, order: Order) -> Answer:
        """Train from these parameters."""
        assert self._train is not None
        return _answer(self._train, ordered_task(order, parameters))

    def measure(self, parameters: Vector) -> Evaluation | str:
        """Measure parameters; a text says what failed."""
        assert self._measure is not None
        try:
            return self._measure(parameters)
        except Exception as error:  # noqa: BLE001 - raised where the result is asked for
            return _described(error)


def _answer(train: Train, task: TrainTask) -> Answer:
    began = time.perf_counter()
    try:
        update = trained(train, task)
    except Exception as error:  # noqa: BLE001 - told to the server, which decides
        return Answer(None, time.perf_counter() - began, _described(error))
    return Answer(update, time.perf_counter() - began)


def _described(error: Exception) -> str:
    """What failed on the first line, how on the rest."""
    return repr(error) + "\n" + "".join(traceback.format_exception(error))
