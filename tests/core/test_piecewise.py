import numpy as np
import pytest

from asyncfeded import piecewise
from asyncfeded.core import vectors
from asyncfeded.core.piecewise import PIECE
from asyncfeded.core.vectors import Vector, Vector64

SIZES = [1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7]


def drawn(size: int) -> tuple[Vector64, Vector]:
    draw = np.random.default_rng(size)
    return draw.normal(size=size), draw.normal(size=size).astype(np.float32)


def amsgrad(m: Vector64, delta: Vector) -> tuple[Vector64, Vector]:
    m = 0.9 * m + 0.1 * delta
    return m, (m / (np.sqrt(np.abs(m)) + 1e-8)).astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pieces_have_the_bits_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, size: int, threads: int
) -> None:
    monkeypatch.setattr(vectors, "SHARED_FROM", 1)
    moment, delta = drawn(size)
    whole, direction = amsgrad(moment, delta)
    m, along = piecewise(amsgrad, moment, delta, threads=threads)
    assert m.tobytes() == whole.tobytes()
    assert along.tobytes() == direction.tobytes()  # and so the same type of number
    alone = piecewise(lambda delta: delta * 2, delta, threads=threads)
    assert alone.tobytes() == (delta * 2).tobytes()


@pytest.mark.filterwarnings("error")
def test_threads_keep_to_what_the_caller_wants_of_an_overflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "SHARED_FROM", 1)
    large = np.full(4 * PIECE, 3e38, np.float32)
    with np.errstate(over="ignore"):
        assert np.isinf(piecewise(lambda x: x * 10, large, threads=2)).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        piecewise(lambda x: x * 10, large, threads=2)


def test_an_error_in_a_piece_is_the_caller_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "SHARED_FROM", 1)

    def refuse(piece: Vector) -> Vector:
        if piece.size > 1:
            raise ValueError("no")
        return piece

    with pytest.raises(ValueError, match="no"):
        piecewise(refuse, np.zeros(3 * PIECE, np.float32), threads=2)
