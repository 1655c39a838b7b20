"""`compare`: run several rules over several seeds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from inspect import isclass, signature
from pathlib import Path
from typing import Any

from torch import nn

from asyncfeded import randomness
from asyncfeded.comparison.comparison import Comparison
from asyncfeded.comparison.kept_runs import kept_runs
from asyncfeded.core.arguments import require_kind, require_whole
from asyncfeded.core.errors import SettingError, require
from asyncfeded.core.metrics import ACCURACY, LOSS, Goal
from asyncfeded.core.rule import AnyRule, Rule
from asyncfeded.front_door import federate, federation_of
from asyncfeded.learning.reproducible import reproducible
from asyncfeded.result import Result
from asyncfeded.runtime.control import Callback

MakeCallbacks = Callable[[str, int], Sequence[Callback]]
"""Makes the callbacks of one run, of this rule and seed."""

OURS = {
    "model": "make_model, a function that makes it",
    "rule": "rules={'a name': rule}",
    "seed": "seeds=[0, 1, 2]",
    "resume": "checkpoint='FOLDER'",
}
"""What to write for the arguments of `federate` that a comparison has in another form."""


def compare(
    make_model: Callable[[], nn.Module],
    datasets: Sequence[Any] | Mapping[str, Any],
    rules: Mapping[str, AnyRule],
    seeds: int | Sequence[int] = 5,
    *,
    metric: str | None = None,
    goal: Goal | None = None,
    target: float | None = None,
    callbacks: MakeCallbacks | None = None,
    checkpoint: str | Path | None = None,
    **arguments: Any,
) -> Comparison:
    """Run every rule with every seed over the clients' `datasets`; return the results together.

        compare(make_model, datasets, {"ours": my_rule, "fedbuff": rules.fedbuff()}, seeds=5)

    The runs of a seed have the same initial model, data, held-out examples and draws of devices.

    - `make_model`: makes the model, a torch module. It is called once per seed, with torch's,
      NumPy's and Python's generators set by the seed; every rule trains a copy.
    - `seeds`: how many, 0, 1, 2, …, or a list of them.
    - `metric`: what the rules are compared by: "accuracy", "loss" or a name in `metrics`. Without
      it accuracy, or loss for a task without accuracy. `goal` is "max" or "min", by default "min"
      for loss alone. `target` is a value whose time the table shows.
    - `callbacks`: a function that makes the callbacks of one run, as in
      `callbacks=lambda rule, seed: [KeepBest(f"{rule}-{seed}.safetensors")]`.
    - `checkpoint`: a folder in which finished runs are kept and the run at work is saved, about
      once a minute. After a crash, the same call goes on there, to the same results. Runs are told
      apart by settings and initial model: data, metrics and loss must be the same.
    - everything else as for `federate`: seconds, world, training, test, loss, metrics,
      evaluate_every, guards, history. A world's own devices draw by their own seed.

    Seeds come one after another and, in each, all rules. Whatever ends a run early raises; the
    error's attribute `comparison` has the runs that were finished, `result` the one that was not.
    """
    for name, instead in OURS.items():
        if name in arguments:
            raise SettingError(f"{name} is no argument of compare: write {instead}")
    _check(make_model, rules, callbacks)
    chosen = _seeds(seeds)
    comparison = Comparison(metric, goal, target)
    measured = [ACCURACY, LOSS, *(arguments.get("metrics") or ())]
    if metric is not None and metric not in measured:
        raise SettingError(
            f"metric must be one that is measured, {', '.join(measured)}; given {metric!r}"
        )
    try:
        with _connection(arguments.get("world")), _carrying_out(checkpoint) as carry_out:
            for seed in chosen:
                initial = _initial_model(make_model, seed)
                for name, rule in rules.items():
                    result = carry_out(
                        deepcopy(initial),
                        datasets,
                        rule=rule,
                        seed=seed,
                        callbacks=() if callbacks is None else callbacks(name, seed),
                        **arguments,
                    )
                    comparison.add(name, seed, result)
    except BaseException as error:
        error.comparison = comparison  # type: ignore[attr-defined]
        raise
    return comparison


@contextmanager
def _carrying_out(checkpoint: Any) -> Iterator[Callable[..., Result]]:
    """What is called as `federate` is, and keeps the runs in a folder if one is given."""
    if checkpoint is None:
        yield federate
        return
    require_kind(isinstance(checkpoint, str | Path), "checkpoint", "a folder", checkpoint)
    with kept_runs(Path(checkpoint)) as kept:

        def kept_or_made(*given: Any, **named: Any) -> Result:
            bound = signature(federate).bind(*given, **named)
            bound.apply_defaults()
            return kept.run(federation_of(bound.arguments))

        yield kept_or_made


def _check(make_model: Any, rules: Any, callbacks: Any) -> None:
    """Refuse what is of the wrong kind before anything is run."""
    makes = callable(make_model) and not isinstance(make_model, nn.Module)
    limit = "a function that makes the model, such as lambda: nn.Linear(5, 2)"
    require_kind(makes, "make_model", limit, make_model)
    limit = "a mapping from names to rules, such as {'fedbuff': rules.fedbuff()}"
    require_kind(isinstance(rules, Mapping), "rules", limit, rules)
    require(len(rules) > 0, "rules", "at least one rule", rules)
    for name, rule in rules.items():
        require(isinstance(name, str), "rules", "named by texts", name)
        require_kind(isinstance(rule, Rule), f"rules[{name!r}]", "a rule, such as fedbuff()", rule)
    makes = callbacks is None or (callable(callbacks) and not isclass(callbacks))
    limit = "a function of (rule, seed) that makes the callbacks of a run"
    require_kind(makes, "callbacks", f"{limit}, such as lambda rule, seed: […]", callbacks)


def _seeds(seeds: Any) -> list[int]:
    """The seeds as a list."""
    if not isinstance(seeds, list | tuple | range):
        require_whole("seeds", seeds)
        require(seeds >= 1, "seeds", "at least 1", seeds)
        return list(range(seeds))
    require(len(seeds) > 0, "seeds", "at least one seed", seeds)
    for seed in seeds:
        require_whole("seeds", seed)
    require(len(set(seeds)) == len(seeds), "seeds", "without repeats", seeds)
    return list(seeds)


def _initial_model(make_model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """The model that every rule begins with; it depends on the seed alone."""
    with reproducible(randomness.key(seed, "initial-model")):
        model = make_model()
    limit = "a function that returns a torch module"
    require_kind(isinstance(model, nn.Module), "make_model", limit, model)
    return model


def _connection(world: Any) -> AbstractContextManager[None]:
    """One connection for all runs; what is no world is refused by the first run."""
    found: AbstractContextManager[None]
    found = (
        world.connection() if hasattr(world, "connection") and not isclass(world) else nullcontext()
    )
    return found
