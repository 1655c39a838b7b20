"""Processes of Ray's, which Ray starts again when they die."""

import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from asyncfeded.core.errors import ClusterError

START_SECONDS = 120.0
"""How long a process may take to be ready, at the beginning or after it was lost."""


class Actor:
    """A process somewhere in the cluster that carries out the calls of one object.

    `prepare` makes the object there. Its recipe stays in the object store as long as this Actor
    exists. When the process dies, its calls raise, and Ray starts it anew. Until it is prepared
    again, calls return None.
    """

    def __init__(self, process: Callable[[Any], Any], recipe: object, cpus: float) -> None:
        self._recipe = ray.put(recipe)
        kind: Any = ray.remote(_Process)
        options = {"num_cpus": cpus, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
        self._handle = kind.options(**options).remote(process, sys.path)

    def prepare(self) -> Any:
        """Begin to make the object; returns Ray's reference to True."""
        return self._handle.prepare.remote(self._recipe)

    def call(self, method: str, *arguments: object) -> Any:
        """Begin a call; returns Ray's reference to its result."""
        return self._handle.call.remote(method, *arguments)

    def restart(self) -> None:
        """End the process, whatever it is doing, and have it started again."""
        ray.kill(self._handle, no_restart=False)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        ray.kill(self._handle)


class _Process:
    """What runs in the process.

    `path` are the folders that the driver imports modules from. The recipe is read after this, and
    may name a module of the user's that is in one of them.
    """

    def __init__(self, process: Callable[[Any], Any], path: Sequence[str]) -> None:
        sys.path += [folder for folder in path if folder not in sys.path]
        self._process = process
        self._made: object = None

    def prepare(self, recipe: object) -> bool:
        self._made = self._process(recipe)
        return True

    def call(self, method: str, *arguments: object) -> object:
        return None if self._made is None else getattr(self._made, method)(*arguments)


def cpus_each(processes: int) -> float:
    """The largest share of a CPU, at most one, at which this many processes fit on the nodes."""
    nodes: list[dict[str, Any]] = ray.nodes()
    cpus_of_nodes = [node["Resources"].get("CPU", 0.0) for node in nodes if node["Alive"]]

    def too_large(share: int) -> bool:  # in ten-thousandths, as Ray counts
        return sum(int(1e4 * cpus) // share for cpus in cpus_of_nodes) < processes

    shares = range(1, 10_001)
    return bisect_left(shares, True, key=too_large) / 1e4


def wait_until_prepared(actors: Mapping[str, Actor], what: str) -> None:
    """Prepare actors, and wait until all are; otherwise name those that are not, and why."""
    calls = {name: actor.prepare() for name, actor in actors.items()}
    if not calls:
        return
    _, late = ray.wait(list(calls.values()), num_returns=len(calls), timeout=START_SECONDS)
    if late:
        missing = ", ".join(name for name, call in calls.items() if call in late)
        raise ClusterError(
            f"{what} must be ready within {START_SECONDS:g} s; not ready: {missing} "
            "(has the cluster too few free CPUs, or too little memory?)"
        )
    for name, call in calls.items():
        try:
            ray.get(call)
        except RayError as error:
            raise ClusterError(f"{name} cannot start: {in_one_line(error)}") from None


def in_one_line(error: Exception) -> str:
    """The last line of an error of Ray's, which says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
