"""Processes of Ray's, which Ray starts again when they die."""

from collections.abc import Callable
from typing import Any

import ray


class Actor:
    """A process somewhere in the cluster that carries out the calls of one object.

    The object is made there by `prepare`, from a recipe that lies in the object store while this
    is held. When the process dies, calls that were under way raise, Ray starts it anew, and until
    it is prepared again calls return None.
    """

    def __init__(self, process: Callable[[Any], Any], recipe: object, cpus: float) -> None:
        self._recipe = ray.put(recipe)
        kind: Any = ray.remote(_Process)
        options = {"num_cpus": cpus, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
        self._handle = kind.options(**options).remote(process)

    def prepare(self) -> Any:
        """Begin to make the object; what is returned stands for True."""
        return self._handle.prepare.remote(self._recipe)

    def call(self, method: str, *arguments: object) -> Any:
        """Begin a call; what is returned stands for its result."""
        return self._handle.call.remote(method, *arguments)

    def restart(self) -> None:
        """End the process, whatever it is doing, and have it started again."""
        ray.kill(self._handle, no_restart=False)

    def end(self) -> None:
        """End the process, whatever it is doing."""
        ray.kill(self._handle)


class _Process:
    """What runs in the process."""

    def __init__(self, process: Callable[[Any], Any]) -> None:
        self._process = process
        self._made: object = None

    def prepare(self, recipe: object) -> bool:
        self._made = self._process(recipe)
        return True

    def call(self, method: str, *arguments: object) -> object:
        return None if self._made is None else getattr(self._made, method)(*arguments)


def free_cpus() -> float:
    """How many CPUs of the cluster nobody has taken."""
    resources: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
    return resources.get("CPU", 0.0)


def cpus_each(processes: int) -> float:
    """An equal share of the free CPUs, at most one each; Ray counts in ten-thousandths."""
    return min(1.0, int(1e4 * free_cpus() / processes) / 1e4)


def in_one_line(error: Exception) -> str:
    """What an error of Ray's says last, which is what it is about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
