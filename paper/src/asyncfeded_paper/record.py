"""One run of the evaluation as it is kept: its settings, its curve, and how K was steered."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import inf, isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from asyncfeded import LocalTraining, Result
from asyncfeded.data import FederatedData
from asyncfeded.experiment import RunSettings, build_rule, resolve, run_experiment
from asyncfeded.runtime import Evaluated, Event, Received
from asyncfeded.store import RunStore, run_key

RESULTS = 2
"""Raised when a change to the code changes what runs give: older runs are then made anew."""

STEERING_BINS = 50
DIGITS = 5
NO_RESULT = (
    *("workers", "out", "data_dir", "workers_on", "ray_address", "allow_unused"),
    "checkpoint_every",
)
"""Settings that change how a run is carried out, and nothing that it gives."""
FILES = {"hangs_from": "hangs_sha256", "availability": "availability_sha256"}
"""Settings that are files, and the digest of their content."""
NO_DEFAULT = object()


@dataclass(frozen=True)
class Record:
    """A finished run as it lies in the store."""

    key: str
    settings: Mapping[str, Any]
    seconds: list[float]
    accuracy: list[float]
    loss: list[float | None]
    summary: Mapping[str, Any]
    steering: Mapping[str, Mapping[str, list[float | None]]]
    """Per client the mean K and staleness in each of `STEERING_BINS` equal parts of the run."""

    @cached_property
    def _result(self) -> Result:
        """The run as it was measured, which knows every metric."""
        points = zip(self.seconds, self.accuracy, strict=True)
        curve = [Evaluated(at, 0, {"accuracy": accuracy}) for at, accuracy in points]
        return Result(self.settings, curve=curve)

    @property
    def max_accuracy(self) -> float:
        """The highest accuracy of the run."""
        return self._result.max_accuracy or 0.0

    @property
    def t90_seconds(self) -> float:
        """When 90 % of the run's own maximum was first reached; infinite if it learned nothing."""
        return _or_never(self._result.t90_seconds)

    @property
    def training_t90_seconds(self) -> float:
        """The same without the start-up of the clients."""
        return self.t90_seconds - float(self.settings.get("start_up", 0.0))

    def seconds_to(self, target: float) -> float:
        """When this accuracy was first reached; infinite if it was not."""
        return _or_never(self._result.seconds_to("accuracy", target))


def _or_never(seconds: float | None) -> float:
    return inf if seconds is None else seconds


def read(store: RunStore, key: str) -> Record:
    """Read a run that is in the store."""
    try:
        return Record(**store.get(key))
    except TypeError:
        raise store.damaged(key) from None


def identity(settings: RunSettings, data_sha256: str) -> dict[str, Any]:
    """Everything that decides what a run gives, its data by their digest."""
    known = resolve(settings).known()
    kept = {name: value for name, value in known.items() if name not in NO_RESULT}
    kept["data_sha256"] = data_sha256
    for name, digest in FILES.items():
        path: Path | None = getattr(settings, name)
        if path is not None:
            kept |= {name: path.name, digest: sha256(path.read_bytes()).hexdigest()}
    return {**kept, "results": RESULTS}


def key(known: Mapping[str, Any]) -> str:
    """The name of a run, by what tells it from a run with every setting at its default.

    A setting or a hyperparameter that is new, and at its default does nothing, changes no name.
    """
    defaults = {name: field.default for name, field in RunSettings.model_fields.items()}
    defaults |= LocalTraining().settings
    usual = build_rule(known["rule"], {}).settings
    told = {name: value for name, value in known["hyperparameters"].items() if value != usual[name]}
    given = {
        name: value for name, value in known.items() if value != defaults.get(name, NO_DEFAULT)
    }
    for name in FILES:
        given.pop(name, None)  # its content counts, not its name
    return run_key({**given, "rule": known["rule"], "hyperparameters": told})


def make_record(settings: RunSettings, data: FederatedData, saved: Path | None = None) -> Record:
    """Carry out a run, or go on with it from the folder in which it is saved now and then."""
    steering = _Steering(settings.seconds)
    result = run_experiment(settings, [steering], data, saved)
    known = identity(settings, data.sha256)
    return Record(
        key=key(known),
        settings=known,
        seconds=[point.seconds for point in result.curve],
        accuracy=[round(accuracy, DIGITS) for accuracy in result.metric("accuracy")],
        loss=[_rounded(loss) for loss in result.metric("loss")],
        summary=_summary(result),
        steering=steering.means(),
    )


def _rounded(loss: float) -> float | None:
    """A loss as JSON can hold it."""
    return round(loss, DIGITS) if isfinite(loss) else None


def _summary(result: Result) -> dict[str, Any]:
    names = ("versions", "updates", "rejected", "lost_rounds", "log_sha256", "wall_seconds")
    whole = result.summary()
    return {name: whole[name] for name in names}


class _Steering:
    """Follows K and staleness of each client."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._epochs: dict[tuple[str, int], list[float]] = {}
        self._staleness: dict[tuple[str, int], list[float]] = {}

    def __call__(self, event: Event, _: object) -> None:
        if not isinstance(event, Received) or event.receipt.staleness is None:
            return
        part = min(STEERING_BINS - 1, int(STEERING_BINS * event.seconds / self._seconds))
        place = (event.receipt.client_id, part)
        self._epochs.setdefault(place, []).append(float(event.epochs or 0))
        self._staleness.setdefault(place, []).append(event.receipt.staleness)

    def state(self) -> dict[str, Any]:
        """What was heard so far."""
        heard = ((place, self._epochs[place], self._staleness[place]) for place in self._epochs)
        return {"heard": [[*place, epochs, staleness] for place, epochs, staleness in heard]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where an earlier process has saved the run."""
        for client, part, epochs, staleness in state["heard"]:
            self._epochs[client, int(part)] = list(map(float, epochs))
            self._staleness[client, int(part)] = list(map(float, staleness))

    def means(self) -> dict[str, dict[str, list[float | None]]]:
        """The mean of each part of the run; None where the client was not heard."""
        clients = sorted({client for client, _ in self._epochs}, key=lambda n: (len(n), n))
        return {
            client: {
                "epochs": _means(self._epochs, client),
                "staleness": _means(self._staleness, client),
            }
            for client in clients
        }


def _means(values: Mapping[tuple[str, int], list[float]], client: str) -> list[float | None]:
    parts = (values.get((client, part)) for part in range(STEERING_BINS))
    return [None if part is None else round(fmean(part), DIGITS) for part in parts]
