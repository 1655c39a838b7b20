"""Is a rule worse than the best, or was it luck: the paired t-test over seeds."""

from collections.abc import Sequence
from math import sqrt

import numpy as np

FEWEST_PAIRS = 3
"""With fewer pairs, a test says next to nothing."""


def paired_p(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The two-sided p-value of a paired t-test; None for fewer than 3 pairs.

        d = first − second,  t = mean(d) / (sd(d) / √n),  p = 2 · P(T < −|t|), T with n − 1 degrees

    Both runs of a pair share their seed, so their model, data and devices, and much of the luck:
    the test looks at differences within pairs. It is a t-test because comparisons have few seeds:
    Wilcoxon's signed-rank test never gives less than 2 / 2ⁿ, which for n = 5 is 0.06. The price is
    the assumption that differences are normal. Where there are many rules, some differ by luck:
    p is not corrected for their number, nor for the best having been chosen from the same runs.
    """
    n = len(pairs)
    if n < FEWEST_PAIRS:
        return None
    from scipy.special import stdtr  # slow to import

    d = np.array([first - second for first, second in pairs])
    mean, sd = float(d.mean()), float(d.std(ddof=1))
    if mean == 0.0:
        return 1.0
    if sd == 0.0:  # t is infinite
        return 0.0
    t = mean / (sd / sqrt(n))
    return float(2.0 * stdtr(n - 1, -abs(t)))
