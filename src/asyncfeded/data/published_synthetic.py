"""Synthetic(α, β) as its authors' published program makes it, to the bit.

Tian Li et al., arXiv:1812.06127; the program is data/synthetic_1_1/generate_synthetic.py of
github.com/litian96/FedProx. One stream of NumPy's legacy generator serves all users, in this order:
all sizes, all model means u_k, all B_k, all input means v_k, and then for each user its weights,
its bias and its inputs. So every user's data depend on all sizes before it.

The program draws inputs with `multivariate_normal`. Their covariance is diagonal, so this is the
mean plus standard normal numbers times the deviations. Both give the same bits. The second needs no
decomposition of a matrix, whose signs may differ between versions of LAPACK.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

FEATURES = 60
CLASSES = 10
DEVIATIONS = np.sqrt(np.arange(1, FEATURES + 1) ** -1.2)
"""The standard deviations of the inputs: their variances are j^−1.2."""
SIZE_FACTOR = 5
"""Sizes are five times those of the program, as in the evaluation of AsyncFedED."""
CHUNK = 100_000
"""How many numbers are skipped at once, to bound memory."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SyntheticSettings:
    """The settings that decide the data of all users; `sizes` replace the drawn sizes."""

    alpha: float
    beta: float
    users: int
    seed: int
    sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class User:
    """What a user's examples are made from; `state` is the generator's before its weights."""

    size: int
    model_mean: float
    input_mean: Numbers
    state: Any


def published_sizes(settings: SyntheticSettings) -> list[int]:
    """The number of examples of each user."""
    return _sizes(settings, _legacy_generator(settings.seed))


@lru_cache(maxsize=8)
def published_users(settings: SyntheticSettings) -> list[User]:
    """Run through the whole stream once and note where each user's part begins."""
    draw = _legacy_generator(settings.seed)
    sizes = _sizes(settings, draw)
    model_means = draw.normal(0.0, settings.alpha, settings.users)
    input_centers = draw.normal(0.0, settings.beta, settings.users)
    input_means = [draw.normal(center, 1.0, FEATURES) for center in input_centers]
    users = []
    for size, model_mean, input_mean in zip(sizes, model_means, input_means, strict=True):
        users.append(User(size, model_mean, input_mean, draw.get_state()))
        _model(draw, model_mean)
        _skip(draw, size * FEATURES)
    return users


def published_examples(user: User, most: int) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The first examples of a user, at most `most`: inputs and labels."""
    draw = np.random.RandomState()
    draw.set_state(user.state)
    weights, bias = _model(draw, user.model_mean)
    noise = draw.standard_normal((min(user.size, most), FEATURES))
    x = user.input_mean + DEVIATIONS * noise
    return x, np.argmax(x @ weights + bias, axis=1)


def _legacy_generator(seed: int) -> np.random.RandomState:
    """As `np.random.seed(seed)`, which takes 32 bits; a larger seed is passed as two words."""
    return np.random.RandomState(seed if seed < 1 << 32 else [seed % (1 << 32), seed >> 32])


def _sizes(settings: SyntheticSettings, draw: np.random.RandomState) -> list[int]:
    drawn = (draw.lognormal(4.0, 2.0, settings.users).astype(int) + 50) * SIZE_FACTOR
    sizes: list[int] = drawn.tolist() if settings.sizes is None else list(settings.sizes)
    return sizes


def _model(draw: np.random.RandomState, mean: float) -> tuple[Numbers, Numbers]:
    return draw.normal(mean, 1.0, (FEATURES, CLASSES)), draw.normal(mean, 1.0, CLASSES)


def _skip(draw: np.random.RandomState, count: int) -> None:
    for begun in range(0, count, CHUNK):
        draw.standard_normal(min(CHUNK, count - begun))
