"""The figures of each rule over its seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan

from asyncfeded.comparison.yardstick import Yardstick
from asyncfeded.report.paired import paired_p
from asyncfeded.report.spread import Spread, spread
from asyncfeded.result import Result

Runs = Mapping[int, Result]
"""The results of one rule, by seed."""
Bests = Mapping[int, float | None]
"""The best value of each run, by seed."""


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """One row of the table; what is not known is NaN.

    `best` is the highest value of the metric in a run, or the lowest where it is to be low.
    `reached` of the `seeds` came to the target, on average after `target_seconds`. `p_value` is
    that of a paired t-test against the best rule, over the `paired_seeds` that both have; None for
    the best rule itself and for fewer than 3 pairs.
    """

    task: str
    rule: str
    seeds: int
    best: Spread
    final: Spread
    t90_seconds: Spread
    target_seconds: Spread
    reached: int
    is_best: bool
    p_value: float | None
    paired_seeds: int
    client_accuracy_p5: Spread
    client_accuracy_p95: Spread
    updates: Spread
    refused: int
    wall_seconds: float


def figures_of(
    results: Mapping[str, Runs], yardstick: Yardstick, target: float | None
) -> list[RuleFigures]:
    """A row per rule; the best rule has the best mean over its seeds."""
    bests: dict[str, Bests] = {
        rule: {seed: yardstick.best_of(run) for seed, run in runs.items()}
        for rule, runs in results.items()
    }
    means = {rule: spread(values.values()).mean for rule, values in bests.items()}
    known = [rule for rule in means if not isnan(means[rule])]
    winner = max(known, key=lambda rule: yardstick.sign * means[rule], default=None)
    rows = []
    for rule, by_seed in results.items():
        runs = list(by_seed.values())
        times = (yardstick.seconds_to(run, target) for run in runs)
        reached = [seconds for seconds in times if seconds is not None]
        pairs = [] if winner is None else _pairs(bests[rule], bests[winner])
        rows.append(
            RuleFigures(
                task=str(runs[0].settings.get("task", "")),
                rule=rule,
                seeds=len(runs),
                best=spread(bests[rule].values()),
                final=spread(yardstick.final_of(run) for run in runs),
                t90_seconds=spread(yardstick.t90_of(run) for run in runs),
                target_seconds=spread(reached) if reached else Spread(nan, 0.0),
                reached=len(reached),
                is_best=rule == winner,
                p_value=None if rule == winner else paired_p(pairs),
                paired_seeds=len(pairs),
                client_accuracy_p5=spread(run.client_accuracy(5) for run in runs),
                client_accuracy_p95=spread(run.client_accuracy(95) for run in runs),
                updates=spread(run.updates for run in runs),
                refused=sum(sum(run.refused.values()) for run in runs),
                wall_seconds=sum(run.wall_seconds for run in runs),
            )
        )
    return rows


def _pairs(first: Bests, second: Bests) -> list[tuple[float, float]]:
    """The values of the seeds that both have."""
    pairs = ((value, second.get(seed)) for seed, value in first.items())
    return [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
