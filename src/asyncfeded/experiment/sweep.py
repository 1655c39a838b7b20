"""A search for good hyperparameters; it keeps its trials, and a later call continues it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import dumps
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from asyncfeded import randomness
from asyncfeded.core.errors import SettingError
from asyncfeded.core.metrics import Goal
from asyncfeded.experiment.search_space import Choices, Range, Space, grid_of
from asyncfeded.files import write_table, write_text

if TYPE_CHECKING:
    import optuna

Sampler = Literal["tpe", "grid", "random"]
Point = Mapping[str, Any]
"""Values of the hyperparameters that are searched."""

DATABASE = "sweep.db"
SWEEP_FILES = (DATABASE, "sweep.csv", "best.toml")
NAME = "sweep"
MADE_WITH = "made_with"
RUNS = "runs_of_the_trial"


@dataclass(frozen=True, slots=True)
class Tried:
    """A point and what it gave; NaN counts as the worst value."""

    number: int
    point: Point
    value: float


class Sweep:
    """A search in a folder: Optuna proposes the points and keeps them in a file of SQLite.

    `made_with` is everything that decides what a point gives; a folder belongs to one such sweep.
    The seed and its number decide each point, so a sweep that was interrupted tries the same points
    as one that was not.
    """

    def __init__(
        self,
        folder: Path,
        space: Space,
        sampler: Sampler,
        goal: Goal,
        seed: int,
        made_with: Mapping[str, Any],
    ) -> None:
        self._folder = folder
        self._space = space
        self._sampler = sampler
        self._goal = goal
        self._seed = seed
        self._grid = grid_of(space) if sampler == "grid" else None
        optuna = _optuna()
        self._study = optuna.create_study(
            storage=f"sqlite:///{(folder / DATABASE).resolve()}",
            study_name=NAME,
            direction="maximize" if goal == "max" else "minimize",
            load_if_exists=True,
        )
        before = self._study.user_attrs.setdefault(MADE_WITH, dict(made_with))
        different = [key for key in made_with if before.get(key) != made_with[key]]
        if different:
            raise SettingError(
                f"out {str(folder)!r} holds a sweep with another {different[0]}: choose another "
                "folder, or give --overwrite"
            )
        self._study.set_user_attr(MADE_WITH, dict(made_with))
        for trial in self._study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
            self._study.tell(trial.number, state=optuna.trial.TrialState.FAIL)  # it was killed

    def tried(self) -> list[Tried]:
        """The points that were tried, in their order."""
        states = [_optuna().trial.TrialState.COMPLETE]
        return [
            Tried(number, trial.params, float(trial.value or 0.0))
            for number, trial in enumerate(self._study.get_trials(states=states), start=1)
        ]

    def ranking(self) -> list[Tried]:
        """The points that were tried, the best first."""
        sign = -1.0 if self._goal == "max" else 1.0
        return sorted(self.tried(), key=lambda tried: sign * tried.value)

    def run(self, trials: int, measure: Callable[[int, Point], float]) -> None:
        """Try points until there are this many; those of earlier calls count."""
        fail = _optuna().trial.TrialState.FAIL
        while (count := len(self.tried())) < trials:
            if self._grid is not None and not self._enqueue_next():
                return
            self._study.sampler = self._sampler_of(count)
            trial = self._study.ask(_distributions(self._space))
            try:
                value = measure(count + 1, trial.params)
            except BaseException:
                self._study.tell(trial, state=fail)
                raise
            worst = -inf if self._goal == "max" else inf
            self._study.tell(trial, worst if isnan(value) else value)
            self._study.set_user_attr(RUNS, {})

    def kept(self, key: str) -> float | None:
        """What a finished run of the trial under way has given; None if it is not finished."""
        value = self._study.user_attrs.get(RUNS, {}).get(key)
        return None if value is None else float(value)

    def keep(self, key: str, value: float) -> None:
        """Take note of a finished run, so that an interrupted trial need not make it again."""
        self._study.set_user_attr(RUNS, {**self._study.user_attrs.get(RUNS, {}), key: value})

    def write(self, heading: str, given: Mapping[str, Any]) -> None:
        """Write sweep.csv, and best.toml: the settings that were given, with the best point."""
        rows = ([t.number, t.value, *(t.point[name] for name in self._space)] for t in self.tried())
        write_table(self._folder / "sweep.csv", ["trial", heading, *self._space], rows)
        best = self.ranking()[0]
        lines = [f"# trial {best.number}: {heading} {best.value:g}"]
        lines += [f"{name} = {_toml(value)}" for name, value in {**given, **best.point}.items()]
        write_text(self._folder / "best.toml", "\n".join(lines) + "\n")

    def _enqueue_next(self) -> bool:
        """Let the next point of the grid be tried; False if all were."""
        assert self._grid is not None
        done = [tried.point for tried in self.tried()]
        left = [point for point in self._grid if point not in done]
        waiting = self._study.get_trials(states=[_optuna().trial.TrialState.WAITING])
        if left and not waiting:
            self._study.enqueue_trial(left[0])
        return bool(left)

    def _sampler_of(self, count: int) -> "optuna.samplers.BaseSampler":
        samplers = _optuna().samplers
        drawn = randomness.key(self._seed, "sweep", round_number=count)
        make = samplers.TPESampler if self._sampler == "tpe" else samplers.RandomSampler
        sampler: optuna.samplers.BaseSampler = make(seed=int.from_bytes(drawn[:4], "little"))
        return sampler


def _toml(value: Any) -> str:
    """A number, a text or a list as TOML, in which the command line writes none as a text."""
    return dumps("none" if value is None else value, ensure_ascii=False)


def _distributions(space: Space) -> "dict[str, optuna.distributions.BaseDistribution]":
    kinds = _optuna().distributions
    found: dict[str, optuna.distributions.BaseDistribution] = {}
    for name, choices in space.items():
        match choices:
            case Choices(values):
                found[name] = kinds.CategoricalDistribution(values)
            case Range(int(low), int(high), log):
                found[name] = kinds.IntDistribution(low, high, log=log)
            case Range(low, high, log):
                found[name] = kinds.FloatDistribution(low, high, log=log)
    return found


def _optuna() -> Any:
    """Optuna, which takes a second to import, and is not always there."""
    try:
        import optuna
    except ImportError:
        raise SettingError(
            "optuna is not installed, which sweep needs: pip install 'asyncfeded[sweep]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
