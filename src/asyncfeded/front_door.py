"""The one call: a torch module, the clients' data and a rule, run on a virtual or a real clock."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from torch import nn

from asyncfeded.argument_kinds import check_kinds
from asyncfeded.client_data import examples_of_clients
from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.rule import AnyRule, Guard
from asyncfeded.federation import Federation
from asyncfeded.learning.evaluation import Metric
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.trainer import Loss
from asyncfeded.result import Result
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.control import Callback
from asyncfeded.runtime.limits import check_evaluations
from asyncfeded.runtime.world import World
from asyncfeded.simulation.virtual_world import Virtual

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

INSTEAD = {
    "module": "federate(model, …): the model is the first argument",
    "suspension": "world=Virtual(suspension=…)",
    "workers": "world=Virtual(workers=…)",
    "at_work": "world=Virtual(at_work=…)",
    "selection": "world=Virtual(selection=…)",
    "devices": "world=Virtual(devices=…) or Ray(devices=…)",
    "memberships": "world=Virtual(memberships=…) or Ray(memberships=…)",
    "on": "world=Virtual(…) or world=Ray(…)",
    "ray_address": "world=Ray(address=…) or Virtual(workers=RayWorkers(…, address=…))",
    "workers_on": "world=Virtual(workers=RayWorkers(…))",
    "patience": "world=Ray(patience=…)",
    "kernel": "training=LocalTraining(kernel=…)",
    "optimizers": "training=LocalTraining(optimizers=…)",
    "max_staleness": "guards=[guards.bounded_staleness(…)]",
    "sketch_buckets": "history=VersionHistory('sketch', …)",
    "on_event": "callbacks=[…], functions of (event, run)",
    "log": "callbacks=[EventLog(…)]",
}
"""What to write for an argument that `federate` had in earlier versions."""


def _name_successors(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Say of an earlier argument what to write now."""

    @wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        for name in kwargs:
            if name in INSTEAD:
                raise SettingError(f"{name} is no argument of federate: write {INSTEAD[name]}")
        return function(*args, **kwargs)

    return checked


@_name_successors
def federate(
    model: nn.Module,
    datasets: Sequence[Any] | Mapping[str, Any],
    *,
    rule: AnyRule | None = None,
    seconds: float = 60.0,
    world: World | None = None,
    training: LocalTraining | None = None,
    test: Any = None,
    loss: Loss = nn.functional.cross_entropy,
    metrics: Mapping[str, Metric] | None = None,
    callbacks: Sequence[Callback] = (),
    evaluate_every: float = 2.0,
    seed: int = 0,
    guards: Sequence[Guard] = (),
    history: VersionHistory | None = None,
    resume: str | Path | None = None,
) -> Result:
    """Train `model` over the clients' `datasets` for some seconds; return what was measured.

    The model is left as the run has trained it.

    - `datasets`: one per client, each a torch Dataset of (input, target) or a pair (inputs,
      targets) of tensors or arrays. A list names its clients client-0, client-1, …; a mapping names
      them itself. A mapping that is no dict is asked for a client's data when they are needed, by
      several threads at once: so there may be any number of clients.
    - `rule`: what the server does with updates; AsyncFedED by default.
    - `world`: `Virtual(…)`, the default, or `Ray(…)`: where clients train and whose clock counts.
    - `training`: how clients train, a `LocalTraining`.
    - `seconds`: how long the run lasts on the world's clock; `evaluate_every`: the seconds between
      two evaluations; `seed`: of everything that is drawn.
    - `loss`: what clients minimise, a function of outputs and targets.
    - `test`: one data set, or a mapping of one per client, which also gives these clients' own
      accuracy at the end. Without it, a tenth of every client's examples is held out.
    - `metrics`: numbers to measure beside accuracy and loss, by name: functions of the model's
      outputs on all test examples and their targets. Accuracy is measured where targets are
      classes, unless a metric is named "accuracy".
    - `callbacks`: functions of (event, run), told of everything that happens. `run.parameters` is
      the model, `run.stop()` ends the run, which then returns its result as usual. There are
      StopAt, StopAfter, KeepBest, ClientCurves, Checkpoint, Progress, EventLog, TensorBoard, MLflow
      and Prometheus.
    - `guards`: what an update must pass before the rule sees it, such as `bounded_staleness(4.0)`.
    - `history`: which versions the server keeps; those that a client trains from by default.
    - `resume`: the folder of a `Checkpoint`, to go on with the run that was saved there. Everything
      else must be given as before, but for the number of workers; what was given for `model` is
      overwritten. The result is the same, to the bit, as without the interruption.

    The log is the same for any number of workers, unless `forward` changes plain attributes of the
    model: buffers and the global generators are set anew for every round, attributes cannot be.

    Whatever else ends a run early raises: an interrupt, an error of training, a callback that
    raises. The model is then left with the last version, and the error's attribute `result` has
    what was measured until then.
    """
    return federation_of(locals()).run()


def federation_of(arguments: Mapping[str, Any]) -> Federation:
    """What `federate` carries out, from all of its arguments by name."""
    given = dict(arguments)
    for name, make in (("rule", asyncfeded), ("training", LocalTraining), ("world", Virtual)):
        if given[name] is None:
            given[name] = make()
    check_kinds(given)
    require(given["evaluate_every"] > 0, "evaluate_every", "above 0", given["evaluate_every"])
    check_evaluations(given["seconds"], given["evaluate_every"])
    rule, seed, resume = given["rule"], given["seed"], given["resume"]
    train, held_out = examples_of_clients(given["datasets"], given["test"], seed)
    same = ("world", "training", "seconds", "loss", "metrics", "callbacks", "evaluate_every")
    return Federation(
        given["model"],
        train,
        held_out,
        rule,
        seed=seed,
        settings={"rule": rule.name, **rule.settings, "seed": seed},
        resume=None if resume is None else Path(resume),
        **{name: given[name] for name in (*same, "guards", "history")},
    )
