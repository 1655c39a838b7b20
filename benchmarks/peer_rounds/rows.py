"""Who takes part in the race of benchmarks/peers.py, and who is compared with whom."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of a table: what is run, with which options, in whose environment."""

    name: str
    module: str
    options: tuple[str, ...] = ()
    environment: str | None = None


@dataclass(frozen=True)
class Contest:
    """Rows of the same work; all others are compared with the references, as far as a workload
    has them."""

    title: str
    references: tuple[Row, ...]
    others: tuple[Row, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows in the order of the table."""
        return self.references + self.others


def _simulated(name: str, tool: str, rule: str, *options: str) -> Row:
    """A row that simulates asynchronous training by this rule."""
    environment = None if tool == "engine" else tool
    return Row(name, "run_simulated", ("--tool", tool, "--rule", rule, *options), environment)


CONTESTS = (
    Contest(
        "clients of one speed",
        (
            Row("engine, eager, 2 workers", "run_engine", ("--kernel", "eager", "--workers", "2")),
            Row(
                "engine, compiled, 2 workers",
                "run_engine",
                ("--kernel", "compiled", "--workers", "2"),
            ),
        ),
        (
            Row("engine, eager, 1 worker", "run_engine", ("--kernel", "eager", "--workers", "1")),
            Row(
                "engine, compiled, 1 worker",
                "run_engine",
                ("--kernel", "compiled", "--workers", "1"),
            ),
            Row("plain loop, 1 thread", "run_plain", ("--threads", "1")),
            Row("plain loop, 2 threads", "run_plain", ("--threads", "2")),
            Row("Flower 1.41.0 simulation", "run_flower", environment="flower"),
            Row("FedLab 1.3.0 standalone", "run_fedlab", environment="fedlab"),
            Row("pfl 0.6.0, 1 process", "run_pfl", ("--processes", "1"), "pfl"),
            Row("pfl 0.6.0, 2 processes", "run_pfl", ("--processes", "2"), "pfl"),
        ),
    ),
    *(
        Contest(
            f"{shown}, clients of different speeds",
            (
                _simulated(f"{shown}: engine, eager", "engine", rule, "--workers", "2"),
                _simulated(
                    f"{shown}: engine, compiled", "engine", rule, "--workers", "2", "--compiled"
                ),
            ),
            (
                _simulated(f"{shown}: APPFL 1.12.0 vsim", "appfl", rule),
                _simulated(f"{shown}: FLGo 0.4.4", "flgo", rule),
            ),
        )
        for shown, rule in (("FedAsync", "fedasync-constant"), ("FedBuff", "fedbuff"))
    ),
)

ROWS = tuple(row for contest in CONTESTS for row in contest.rows)


def chosen(parts: Sequence[str]) -> list[Row]:
    """The rows whose name contains one of these, and those that they are compared with."""
    rows: list[Row] = []
    for contest in CONTESTS:
        named = [row for row in contest.rows if any(part in row.name for part in parts)]
        if named:
            rows += [row for row in contest.rows if row in named or row in contest.references]
    return rows
