"""What a run may ask for: beyond these limits it would not end, or not fit into memory."""

from asyncfeded.core.errors import SettingError

MOST_EVALUATIONS = 1_000_000
MOST_AT_WORK = 100_000


def check_evaluations(seconds: float, evaluate_every: float) -> None:
    """Refuse an interval that asks for more evaluations than a run may have."""
    if not seconds / MOST_EVALUATIONS <= evaluate_every:
        raise SettingError(
            f"evaluate_every must be at least {seconds / MOST_EVALUATIONS:g}, for at most "
            f"{MOST_EVALUATIONS:,} evaluations in {seconds:g} seconds; given {evaluate_every:g}"
        )


def check_at_work(clients: int) -> None:
    """Refuse more clients than can be at work at once."""
    if clients > MOST_AT_WORK:
        raise SettingError(
            f"clients must be at most {MOST_AT_WORK:,} where all are at work at once; given "
            f"{clients:,}: give at_work, how many are at work at once"
        )
