"""A task of the user's own: data and a model, for `asyncfeded run --task FILE.py:factory`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncfeded.core.errors import AsyncFedEDError, SettingError
from asyncfeded.data.federated import Examples, FederatedData
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.on_demand import each
from asyncfeded.own_code import short_name
from asyncfeded.tasks.paper_task import DataChoice, RunnableTask, Widths

if TYPE_CHECKING:
    from torch import nn

    from asyncfeded.learning.datasets import TensorExamples
    from asyncfeded.learning.evaluation import Metric
    from asyncfeded.learning.trainer import Loss


@dataclass(frozen=True, slots=True)
class Task:
    """What is learned: the clients' data, a model, and how to train and measure it.

    `datasets` and `test` are as in `federate`, and `model` makes the module. A factory of tasks may
    have the arguments `clients` and `seed`, which then come from the command line.

        def make(clients: int, seed: int) -> Task:
            return Task(datasets=my_clients(clients, seed), model=my_module)
    """

    datasets: Sequence[Any] | Mapping[str, Any]
    model: "Callable[[], nn.Module]"
    test: Any = None
    loss: "Loss | None" = None
    metrics: "Mapping[str, Metric] | None" = None
    training: LocalTraining = field(default_factory=LocalTraining)


FROM_THE_COMMAND_LINE = ("clients", "seed")
NOT_FOR_OWN_TASKS = ("min_examples", "max_examples", "split")


def takes(factory: Callable[..., Any]) -> set[str]:
    """Which arguments of the command line a factory of tasks has."""
    return set(inspect.signature(factory).parameters) & set(FROM_THE_COMMAND_LINE)


def own_task(name: str, factory: Callable[..., Any], clients: int, seed: int) -> RunnableTask:
    """Make a user's task, as a run uses it."""
    given = {"clients": clients, "seed": seed}
    task = _made(name, factory, {key: given[key] for key in takes(factory)})

    def make_data(choice: DataChoice) -> FederatedData:
        for setting in NOT_FOR_OWN_TASKS:
            if getattr(choice, setting) is not None:
                raise SettingError(f"{setting} must be left out for a task of your own, {name!r}")
        return _federated_data(name, task, seed)

    def make_module(widths: Widths) -> "nn.Module":
        if widths:
            raise SettingError(f"widths must be left out for a task of your own, {name!r}")
        return _checked_module(name, task.model())

    return RunnableTask(
        name=short_name(name),
        make_data=make_data,
        make_module=make_module,
        widths=(),
        training=task.training,
        loss=task.loss,
        metrics=task.metrics,
        own=True,
    )


def _made(name: str, factory: Callable[..., Any], given: Mapping[str, int]) -> Task:
    try:
        task: object = factory(**given)
    except AsyncFedEDError:
        raise
    except Exception as error:
        text = f"task {name!r} cannot be made: {type(error).__name__}: {error}"
        raise SettingError(text) from error
    if not isinstance(task, Task):
        raise SettingError(
            f"task {name!r} must return an asyncfeded.Task; it gave a {type(task).__name__}"
        )
    return task


def _checked_module(name: str, module: object) -> "nn.Module":
    from torch import nn

    if not isinstance(module, nn.Module):
        raise SettingError(
            f"task {name!r}: its model must make a torch module; it gave a {type(module).__name__}"
        )
    return module


def _federated_data(name: str, task: Task, seed: int) -> FederatedData:
    from asyncfeded.client_data import examples_of_clients

    train, test = examples_of_clients(task.datasets, task.test, seed)
    return FederatedData(
        name=name,
        num_classes=0,
        train=each(train, _as_arrays),
        test={client: _as_arrays(examples) for client, examples in test.items()},
    )


def _as_arrays(examples: "TensorExamples") -> Examples:
    return Examples(examples.x.numpy(), examples.y.numpy(), examples.per_epoch)
