"""Small evaluations, which many tests of the report look at."""

SMALL_EVALUATION = (
    *("paper", "--task", "synthetic-1-1", "--seconds", "8", "--seeds", "2", "--table", "1"),
    *(word for number in range(1, 6) for word in ("--figure", str(number))),
    *("--suspension", "0", "--suspension", "0.5", "--workers", "2"),
)
"""Figures 1 to 5 and Table 1, from short runs."""
PART_OF_IT = (
    *("paper", "--task", "synthetic-1-1", "--seconds", "8", "--seeds", "2", "--table", "1"),
    *("--figure", "5", "--workers", "2"),
)
"""Some of the runs of the small evaluation, and quicker to report."""
