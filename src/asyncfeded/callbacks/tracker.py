"""What every tracker does: open a log, write the points of a run to it, say how the run ended."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol, Self

from asyncfeded.callbacks.figures import Figures
from asyncfeded.core.errors import FileError, SettingError
from asyncfeded.files import encoded
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Event, Finished, Started
from asyncfeded.runtime.saved import Saved

Setting = bool | int | float | str


class Ending(NamedTuple):
    """How a run has ended, and what ended it."""

    how: Literal["finished", "stopped", "interrupted", "failed"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.how}: {self.reason}" if self.reason else self.how


class Log(Protocol):
    """What a tracker writes to; `seconds` are those of the run."""

    def write_settings(self, rule: str, settings: Mapping[str, Setting]) -> None:
        """Say what the run is made with."""

    def write_figures(self, seconds: float, version: int, figures: Mapping[str, float]) -> None:
        """Add a point to the curve of each figure."""

    def write_end(self, ending: Ending) -> None:
        """Say how the run has ended."""

    def state(self) -> Saved:
        """Write what waits; return what another process needs to go on with this log."""

    def close(self) -> None:
        """Close the log."""


class Tracker(ABC):
    """A callback that writes a run to a log of its own, from the beginning of the run to its end.

    The log is closed however the run ends.
    """

    def __init__(self, clients: int, *libraries: str) -> None:
        self._clients = clients
        self._figures = Figures(clients)
        self._log: Log | None = None
        self._resumed: Saved | None = None
        self._ending = Ending("finished")
        missing = [name for name in libraries if find_spec(name) is None]
        if missing:
            raise SettingError(
                f"{type(self).__name__} needs {missing[0]}, which is not installed: "
                "pip install 'asyncfeded[track]'"
            )

    @abstractmethod
    def _open(self, resumed: Saved | None) -> Log:
        """Open a log for a run that is about to begin or, from its state, to go on."""

    def __enter__(self) -> Self:
        self._figures = Figures(self._clients)
        self._ending = Ending("finished")
        resumed, self._resumed = self._resumed, None
        self._log = self._open(None if resumed is None else resumed["log"])
        if resumed is not None:
            self._figures.restore(resumed["figures"])
        return self

    def state(self) -> Saved:
        """Where the curves stand."""
        assert self._log is not None
        return {"figures": self._figures.state(), "log": self._log.state()}

    def restore(self, state: Saved) -> None:
        """Go on with the log of an earlier process when the run does."""
        self._resumed = state

    def __call__(self, event: Event, run: Run) -> None:
        """Write the points that the event completes."""
        if self._log is None:
            raise SettingError(f"{type(self).__name__} must be used in a with block")
        if isinstance(event, Started):
            self._log.write_settings(event.rule, _flat(run.settings))
        if isinstance(event, Finished) and event.stopped_by is not None:
            self._ending = Ending("stopped", event.stopped_by)
        for point in self._figures.of(event):
            self._log.write_figures(*point)

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        log, self._log = self._log, None
        assert log is not None
        if kind is not None:
            reason = _readable(f"{kind.__name__}: {error}" if str(error) else kind.__name__)
            self._ending = Ending(
                "failed" if issubclass(kind, Exception) else "interrupted", reason
            )
        try:
            try:
                for point in self._figures.rest():
                    log.write_figures(*point)
                log.write_end(self._ending)
            finally:
                log.close()
        except FileError:
            if kind is None:  # otherwise what ended the run is the error to be seen
                raise


def _flat(settings: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings of a run and its rule's hyperparameters, which share one set of names."""
    found: dict[str, Setting] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= _flat(value)
        elif isinstance(value, bool | int | float):
            found[name] = value
        elif value is not None:
            found[name] = _readable(value)
    return found


def _readable(value: object) -> str:
    """A value as text that can be encoded; some paths cannot."""
    return encoded(str(value)).decode()
