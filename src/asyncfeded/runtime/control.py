"""What a callback may do to a run: read the model, save it, measure clients, stop."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from asyncfeded.core.messages import Refusal
from asyncfeded.core.server import Server
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.events import Event
from asyncfeded.runtime.saved import Saved

Metrics = Mapping[str, float]


class Run:
    """A run under way, as its callbacks see it.

    `seconds` is when the run ends unless it is stopped, `settings` what it is made with. `save` and
    `measure_clients` are what the world around the loop offers.
    """

    def __init__(
        self,
        server: Server,
        seconds: float = 0.0,
        save: Callable[[Vector, Path], None] | None = None,
        measure_clients: Callable[[Vector], Mapping[str, Metrics]] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.seconds = seconds
        self.settings: Mapping[str, Any] = {} if settings is None else settings
        self._server = server
        self._save = save
        self._measure_clients = measure_clients
        self._evaluated: Vector | None = None
        self._when_at_rest: list[Callable[[], None]] = []
        self._now = 0.0
        self._handling_began = time.perf_counter()
        self.stopped_by: str | None = None
        self.parts: dict[str, Callable[[], object]] = {"server": server.state}
        """What `state` is made of: the parts of the run by name."""

    @property
    def parameters(self) -> Vector:
        """The model that the event is about, read-only.

        Evaluations are reported one interval late: during `Evaluated` these are the parameters that
        were evaluated, otherwise the server's newest.
        """
        return self._server.parameters if self._evaluated is None else self._evaluated

    @property
    def updates(self) -> int:
        """How many updates the server has accepted."""
        return self._server.accepted

    @property
    def version(self) -> int:
        """The number of the newest version."""
        return self._server.version

    @property
    def refused(self) -> Mapping[Refusal, int]:
        """How many updates the server has refused, by reason."""
        return self._server.refused

    @property
    def lost_rounds(self) -> Mapping[str, int]:
        """How many rounds were lost, by reason."""
        return self._server.lost

    @property
    def at_work(self) -> int:
        """How many clients hold a task."""
        return self._server.number_at_work

    @property
    def versions_held(self) -> int:
        """How many versions of the model are held in memory."""
        return self._server.stored_versions

    @property
    def epochs(self) -> dict[str, int]:
        """K of every client that takes part, by name."""
        return self._server.epochs

    @property
    def handling_seconds(self) -> float:
        """Real seconds since the server has begun to handle the last signal."""
        return time.perf_counter() - self._handling_began

    def stop(self, reason: str = "a callback") -> None:
        """End the run after this event; its last model is still evaluated."""
        if self.stopped_by is None:
            self.stopped_by = reason

    def when_at_rest(self, act: Callable[[], None]) -> None:
        """Call this once before the next signal, when `state` can be asked for."""
        self._when_at_rest.append(act)

    def state(self) -> Saved:
        """Return the whole run as data, from which another process can go on.

        To be called by what `when_at_rest` was given; write the state before returning.
        """
        return {"seconds": self._now, **{name: part() for name, part in self.parts.items()}}

    def at_rest(self, seconds: float) -> None:
        """No signal is half handled; called by the loop."""
        if self._when_at_rest:
            self._now = seconds
            acts, self._when_at_rest = self._when_at_rest, []
            for act in acts:
                act()

    def handling_begins(self) -> None:
        """A signal is handled now; called by the loop."""
        self._handling_began = time.perf_counter()

    def save(self, path: str | Path) -> None:
        """Write these parameters as safetensors, which the module's `load_state_dict` takes."""
        assert self._save is not None
        self._save(self.parameters, Path(path))

    def measure_clients(self) -> Mapping[str, Metrics]:
        """Every metric of these parameters on each client's own test examples."""
        return {} if self._measure_clients is None else self._measure_clients(self.parameters)

    def show(self, evaluated: Vector | None) -> None:
        """Set which evaluated model the next event is about; called by the loop."""
        self._evaluated = evaluated


Callback = Callable[[Event, Run], None]
"""Called with every event. A callback that is a context manager is entered around the run."""
