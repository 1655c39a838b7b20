"""What the report says around its charts."""

from collections.abc import Sequence

from asyncfeded_paper.griewank import Example
from asyncfeded_paper.plan import OURS, Cell, Plan, constant
from asyncfeded_paper.results import Records, mean_accuracy, mean_maximum
from asyncfeded_paper.scope import CONSTANT_EPOCHS, USUAL_SUSPENSION

SOURCE = "The authors' figures are from the raw results published at github.com/Qiyr0/AsyncFedED."
ABOUT_CURVES = (
    "The line is the mean over seeds of curves smoothed over five evaluations, the band one "
    "standard deviation either way. Within a panel all rules meet the same initial model, data "
    "and devices. Hangs are drawn by the seeds; without such runs the authors' hangs are shown."
)
ABOUT_BESIDE = (
    "Ours with the hangs that the authors' clients had, where there is such a run: one seed. "
    "Theirs is the mean over their runs, every 10 seconds."
)
TITLES = {
    "figure-2-authors": "Figure 2 beside the authors' curves",
    "figure-4-steering": "K and staleness of each client",
}
ABOUT_SUSPENSION = (
    "Maximum accuracy is the highest of all evaluations of a run, as in the paper, without "
    "smoothing: it flatters rules that swing. Time to 90 % is that to 90 % of the run's own "
    "maximum, so a rule that stays low can look fast."
)


def lead(plan: Plan, runs: int, seeds: Sequence[int]) -> list[str]:
    """What this report is; of a report without runs there is nothing to be said."""
    if runs == 0:
        return []
    seconds = ", ".join(f"{task}: {plan.seconds_of(task):g}" for task in plan.tasks)
    return [
        f"{runs} runs on a virtual clock, scale {plan.scale}, {_range(seeds)} per cell (one in a "
        f"sweep), virtual seconds per run: {seconds}. {SOURCE} They ran 300 seconds in real time. "
        "Their random test split, initial model, writers and roles are not known; ours are drawn.",
    ]


def about_griewank(shown: Sequence[Example]) -> list[str]:
    """What each rule makes of the four updates."""
    sentences = [
        "A made-up example. Four clients start from the same version; the dashed arrows are their "
        "updates. Meanwhile "
        "four fast clients lead the model around (steps 1 to 4), and then the four arrive one by "
        "one (steps 5 to 8). The model is near where they started, so the last update still leads "
        "to the minimum."
    ]
    for example in shown:
        lags = ", ".join(str(arrival.lag) for arrival in example.arrivals)
        weights = ", ".join(f"{arrival.weight:.0%}" for arrival in example.arrivals)
        stale = ", ".join(f"{arrival.distance_staleness:.2f}" for arrival in example.arrivals)
        last = example.arrivals[-1]
        sentences.append(
            f"{example.rule}: lags {lags}; staleness by distance {stale}; weights {weights} "
            f"of a fresh update's. The last update takes the loss from {last.loss_before:.3f} to "
            f"{last.loss_after:.3f}."
        )
    return sentences


def about_epochs(records: Records, plan: Plan) -> list[str]:
    """What adaptive K is worth at equal virtual time."""
    sentences = []
    for task in plan.tasks:
        adaptive = records.get(Cell(task, OURS, USUAL_SUSPENSION))
        fixed = {
            k: records[cell]
            for k in CONSTANT_EPOCHS
            if (cell := Cell(task, OURS, USUAL_SUSPENSION, constant(k))) in records
        }
        if not adaptive or not fixed:
            continue
        best = max(fixed, key=lambda k: mean_maximum(fixed[k]))
        courses = {"adaptive K": adaptive, f"K = {best}, the best constant one": fixed[best]}
        if 10 in fixed:
            courses["K = 10, where it starts"] = fixed[10]
        said = (
            f"{name}: {mean_maximum(c):.1%}, {mean_accuracy(c):.1%} on average"
            for name, c in courses.items()
        )
        sentences.append(f"{task}, maximum and average over the run: {'; '.join(said)}.")
    return sentences


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    if low != high:
        return f"{low} to {high} seeds"
    return "1 seed" if high == 1 else f"{high} seeds"
