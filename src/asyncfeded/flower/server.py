"""A ServerApp that trains asynchronously."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from torch import nn

from asyncfeded.argument_kinds import check_kinds
from asyncfeded.callbacks import EventLog
from asyncfeded.callbacks.checkpoint import LOG_FILE, Checkpoint, is_saved
from asyncfeded.callbacks.progress import Progress
from asyncfeded.client_data import WHOLE
from asyncfeded.core.arguments import require_kind
from asyncfeded.core.errors import FileError, require
from asyncfeded.core.history import VersionHistory
from asyncfeded.core.rule import AnyRule, Guard
from asyncfeded.federation import Federation
from asyncfeded.flower.flower_world import Flower
from asyncfeded.flower.messages import Messages, check_evaluate_on
from asyncfeded.flower.model import layout_of
from asyncfeded.learning.datasets import as_examples
from asyncfeded.learning.evaluation import Metric
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.saving import MODEL_FILE, save_module
from asyncfeded.learning.trainer import Loss
from asyncfeded.result import ClientFigures, Result
from asyncfeded.rules import asyncfeded
from asyncfeded.runtime.control import Callback
from asyncfeded.runtime.limits import check_evaluations

Arguments = ParamSpec("Arguments")

CHECKPOINT = "checkpoint"
SUMMARY = "summary.json"


def serve(
    grid: Grid,
    model: nn.Module,
    *,
    rule: AnyRule | None = None,
    seconds: float = 600.0,
    test: Any = None,
    loss: Loss = nn.functional.cross_entropy,
    metrics: Mapping[str, Metric] | None = None,
    evaluate_every: float = 30.0,
    evaluate_on: int = 0,
    callbacks: Sequence[Callback] | None = None,
    guards: Sequence[Guard] = (),
    history: VersionHistory | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    messages: Messages | None = None,
) -> Result:
    """Train `model` over the nodes of a Flower federation for some seconds; return what came of it.

    The model is left as the run has trained it. It stands for the arrays that clients are sent,
    named as in its `state_dict`; where clients do not use torch, an `nn.ParameterList` of the
    arrays does, whose names are 0, 1, … as in Flower's records of NumPy arrays.

    - `rule`, `guards`, `history`: as in `federate`; AsyncFedED by default.
    - `test`: the server's own test data, measured every `evaluate_every` seconds with `loss` and
      `metrics`. Without it, the server measures nothing itself.
    - `evaluate_on`: this many clients, drawn anew each time, evaluate the model on their own data.
      The means of their metrics, weighted by their numbers of examples, are named federated_….
      Neither keeps training waiting: an evaluation that takes longer leaves out the next.
    - `callbacks`: as in `federate`; without, the run shows its progress.
    - `folder`: where the run is saved as it goes, and its results at the end. A run that was
      interrupted goes on if it is given the same folder. Give an absolute path: Flower runs the
      app in a folder of its own.
    - `messages`: how clients are talked to, `Messages(epochs_key="local-epochs", …)`.

    To take settings from Flower's run config, call this from a ServerApp of your own:

        @app.main()
        def main(grid, context):
            asyncfeded.flower.serve(grid, model, seconds=context.run_config["seconds"])
    """
    rule = asyncfeded() if rule is None else rule
    messages = Messages() if messages is None else messages
    require_kind(isinstance(messages, Messages), "messages", "a Messages", messages)
    right = folder is None or isinstance(folder, str | Path)
    require_kind(right, "folder", "a path", folder)
    callbacks = [Progress()] if callbacks is None else list(callbacks)
    world = Flower(grid, messages, layout_of(model), test is not None, evaluate_on)
    training = LocalTraining()  # clients train in their own way
    check_kinds({**locals(), "datasets": [], "resume": None})
    require(evaluate_every > 0, "evaluate_every", "above 0", evaluate_every)
    check_evaluations(seconds, evaluate_every)
    check_evaluate_on(evaluate_on)
    place = None if folder is None else Path(folder)
    resume = None if place is None else _begin_in(place, callbacks)

    def write(result: Result) -> None:
        if place is not None:
            save_module(model, place / MODEL_FILE)
            result.write(place, f"{rule.name} on Flower")

    result = Federation(
        model,
        {},
        {} if test is None else {WHOLE: as_examples(test)},
        rule,
        world,
        training,
        seconds,
        loss,
        metrics=metrics,
        callbacks=callbacks,
        evaluate_every=evaluate_every,
        seed=seed,
        guards=guards,
        history=history,
        settings={"rule": rule.name, **rule.settings, "seed": seed, "world": "flower"},
        describe=lambda _: ClientFigures(),
        resume=resume,
        write=write,
    ).run()
    if place is not None:
        with suppress(OSError):  # what else lies there is not ours
            (place / CHECKPOINT).rmdir()
    return result


def _as_app(
    function: Callable[Concatenate[Grid, Arguments], Result],
) -> Callable[Arguments, ServerApp]:
    """A function of the same arguments, but for the grid, that makes a ServerApp of it."""

    def make(*args: Arguments.args, **kwargs: Arguments.kwargs) -> ServerApp:
        app = ServerApp()

        @app.main()
        def main(grid: Grid, _: Context) -> None:
            function(grid, *args, **kwargs)

        return app

    whole = signature(function)
    make.__signature__ = whole.replace(  # type: ignore[attr-defined]
        parameters=list(whole.parameters.values())[1:], return_annotation=ServerApp
    )
    make.__name__ = make.__qualname__ = "server_app"
    make.__doc__ = "Make a ServerApp that calls `serve` with these arguments."
    return make


server_app = _as_app(serve)
"""Make a ServerApp that calls `serve` with these arguments.

    app = asyncfeded.flower.server_app(model, rule=rules.asyncfeded(), seconds=600)
"""


def _begin_in(folder: Path, callbacks: list[Callback]) -> Path | None:
    """Make the folder ready; returns where to go on, if a run was interrupted there."""
    if (folder / SUMMARY).exists():
        raise FileError(
            f"folder {str(folder)!r} holds {SUMMARY} of a run that is over: choose another folder, "
            "or remove this one"
        )
    if not any(isinstance(callback, EventLog) for callback in callbacks):
        callbacks.append(EventLog(folder / LOG_FILE))
    saved = folder / CHECKPOINT
    if is_saved(saved):
        return saved
    try:
        saved.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{str(saved)!r} cannot be made: {error.strerror}") from None
    callbacks.append(Checkpoint(saved))
    return None
