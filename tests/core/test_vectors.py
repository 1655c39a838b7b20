import numpy as np
import pytest

from asyncfeded.core import vectors
from asyncfeded.core.kernels import BLOCK
from builders import vector


def test_a_norm_is_the_root_of_the_sum_of_squares() -> None:
    assert vectors.norm(vector(3, 4)) == 5.0
    assert vectors.norm_and_distance(vector(0, 2), vector(4, 6), vector(1, 2)) == (2.0, 5.0)


def test_the_norm_of_an_empty_vector_is_zero() -> None:
    assert vectors.norm(vector()) == 0.0


@pytest.mark.parametrize("size", [1, 127, 129, BLOCK - 1, BLOCK, 3 * BLOCK + 7])
def test_norms_agree_with_float64_arithmetic_at_and_around_block_borders(size: int) -> None:
    draw = np.random.default_rng(size)
    left = draw.normal(size=size).astype(np.float32)
    right = draw.normal(size=size).astype(np.float32)
    exact = np.linalg.norm(left.astype(np.float64) - right.astype(np.float64))
    length, distance = vectors.norm_and_distance(left, left, right)
    assert distance == pytest.approx(exact, rel=1e-7)
    assert distance == vectors.norm(left - right)
    assert length == vectors.norm(left)
    assert vectors.norm(left) == pytest.approx(np.linalg.norm(left.astype(np.float64)), rel=1e-14)


def test_a_norm_has_the_same_bits_wherever_the_vector_lies_in_memory() -> None:
    values = np.random.default_rng(0).normal(size=50_001).astype(np.float32)
    memory = np.zeros(2 * values.size, dtype=np.float32)
    shifted = memory[3 : 3 + values.size]
    strided = memory[::2]
    for place in (shifted, strided):
        place[:] = values
        assert vectors.norm(place) == vectors.norm(values)


def test_a_norm_of_the_largest_finite_numbers_does_not_overflow() -> None:
    largest = float(np.finfo(np.float32).max)
    assert vectors.norm(np.full(1000, largest, np.float32)) == pytest.approx(largest * 1000**0.5)


def test_a_distance_beyond_float32_is_still_a_number() -> None:
    _, distance = vectors.norm_and_distance(vector(1, 1), vector(3e38, 0), vector(-3e38, 0))
    assert distance == pytest.approx(6e38)


def test_a_norm_of_the_smallest_number_is_not_zero() -> None:
    assert vectors.norm(vector(float(np.finfo(np.float32).smallest_subnormal))) > 0


def test_a_step_is_taken_in_float32_into_the_given_memory() -> None:
    out = vector(0, 0)
    assert vectors.add_scaled(vector(1, 2), 0.5, vector(4, -2), out)
    assert out.tolist() == [3.0, 1.0]


@pytest.mark.parametrize("broken", [np.nan, np.inf, 3e38])
def test_a_step_that_leaves_the_finite_numbers_says_so(broken: float) -> None:
    assert not vectors.add_scaled(vector(3e38, 0), 1.0, vector(broken, 1), vector(0, 0))


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    draw = np.random.default_rng(0)
    size = vectors.SHARED_FROM + 12_345
    delta, current, base = (draw.random(size, dtype=np.float32) for _ in range(3))
    alone, shared = np.empty_like(base), np.empty_like(base)
    assert vectors.norm(delta, threads) == vectors.norm(delta, 1)
    norms = [vectors.norm_and_distance(delta, current, base, count) for count in (1, threads)]
    assert norms[0] == norms[1]
    assert vectors.add_scaled(base, 0.3, delta, alone, 1)
    assert vectors.add_scaled(base, 0.3, delta, shared, threads)
    assert alone.tobytes() == shared.tobytes()
    delta[-1] = np.nan
    assert not vectors.add_scaled(base, 0.3, delta, shared, threads)


def test_nan_and_infinity_are_found() -> None:
    assert vectors.all_finite(vector(1, 2))
    assert not vectors.all_finite(vector(1, np.nan))
    assert not vectors.all_finite(vector(-np.inf, 1))


@pytest.mark.parametrize("size", [1, BLOCK, 3 * BLOCK + 7])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_mix_and_a_weighted_sum_have_numpy_s_bits(
    monkeypatch: pytest.MonkeyPatch, size: int, threads: int
) -> None:
    monkeypatch.setattr(vectors, "SHARED_FROM", 1)
    draw = np.random.default_rng(size)
    current, base, delta = draw.normal(size=(3, size)).astype(np.float32)
    out = np.empty_like(current)
    assert vectors.mix(current, 0.3, base, delta, out, threads)
    assert out.tobytes() == (current + np.float32(0.3) * (base + delta - current)).tobytes()
    total = draw.normal(size=size)
    added = vectors.add_weighted(total, 0.3, delta, threads)
    assert added.tobytes() == (total + 0.3 * delta.astype(np.float64)).tobytes()


def test_a_mix_that_is_not_finite_says_so() -> None:
    out = vector(0, 0)
    assert not vectors.mix(vector(0, 0), 1.0, vector(1, 3e38), vector(1, 3e38), out)
