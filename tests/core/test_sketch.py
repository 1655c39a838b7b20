"""Sketches of versions: how far the distances that they tell are off."""

import numpy as np
import numpy.typing as npt
import pytest

from asyncfeded import Server, VersionHistory, rules
from asyncfeded.core import sketch
from asyncfeded.core.errors import SettingError
from asyncfeded.core.vectors import Vector
from builders import answer, vector


def off_by(vectors: list[Vector], buckets: int) -> npt.NDArray[np.float64]:
    """The relative errors of the norms that sketches tell."""
    nothing = np.zeros(buckets)
    told = np.array([sketch.distance(sketch.sketch(v, buckets), nothing) for v in vectors])
    exact = np.array([np.linalg.norm(v.astype(np.float64)) for v in vectors])
    errors: npt.NDArray[np.float64] = told / exact - 1
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("buckets", [256, 4096])
def test_a_distance_is_off_by_the_stated_error(buckets: int) -> None:
    draw = np.random.default_rng(buckets)
    errors = off_by([draw.normal(size=40_000).astype(np.float32) for _ in range(300)], buckets)
    stated = 1 / np.sqrt(2 * buckets)
    # The standard deviation of 300 draws is itself off by 1/√600 = 4 %.
    assert errors.std() == pytest.approx(stated, rel=0.2)
    assert np.abs(errors).max() < 5 * stated
    assert abs(errors.mean()) < stated / 4


def test_few_large_elements_a_regular_pattern_or_a_smooth_vector_are_no_worse() -> None:
    buckets, size = 1024, 60_000
    draw = np.random.default_rng(0)
    hard = []
    for _ in range(60):
        sparse, comb = np.zeros(size, np.float32), np.zeros(size, np.float32)
        sparse[draw.choice(size, 30, replace=False)] = draw.normal(size=30)
        comb[int(draw.integers(buckets)) :: buckets] = 1  # one and the same place of each stretch
        hard += [sparse, comb, np.sin(np.arange(size) / draw.uniform(1, 900)).astype(np.float32)]
    assert np.sqrt(np.mean(off_by(hard, buckets) ** 2)) < 1.5 / np.sqrt(2 * buckets)


def test_a_sketch_is_linear() -> None:
    draw = np.random.default_rng(1)
    left, right = draw.normal(size=(2, 5000)).astype(np.float32)
    apart = sketch.sketch(left, 128) - sketch.sketch(right, 128)
    np.testing.assert_allclose(apart, sketch.sketch(left - right, 128), atol=1e-5)


def test_every_element_goes_to_one_bucket_with_a_sign() -> None:
    for place in (0, 1, 63, 64, 129, 999):
        unit = np.zeros(1000, np.float32)
        unit[place] = 3
        filled = sketch.sketch(unit, 64)
        assert np.abs(filled).sum() == 3
        assert np.count_nonzero(filled) == 1


def test_a_run_on_sketches_follows_the_exact_one() -> None:
    servers = [
        Server(np.zeros(2000, np.float32), rules.asyncfeded(kappa=0.1), history=history)
        for history in (VersionHistory(), VersionHistory("sketch", buckets=512))
    ]
    tasks = [{name: server.join(name) for name in "abcde"} for server in servers]
    draw = np.random.default_rng(2)
    for _ in range(200):
        name, delta = "abcde"[draw.integers(5)], draw.normal(size=2000).tolist()
        for server, own in zip(servers, tasks, strict=True):
            receipt = server.receive(answer(own[name], delta))
            assert receipt.next_task is not None
            own[name] = receipt.next_task
    exact, sketched = (server.parameters for server in servers)
    assert not np.array_equal(exact, sketched)
    assert np.linalg.norm(exact - sketched) < np.linalg.norm(exact) / np.sqrt(2 * 512)


def test_a_duplicate_under_sketches_leaves_the_client_what_it_has() -> None:
    server = Server(vector(0), rules.asyncfeded(), history=VersionHistory("sketch", buckets=8))
    update = answer(server.join("a"), [1])
    task = server.receive(update).next_task
    assert task is not None
    again = server.receive(update)
    assert (again.accepted, again.next_task) == (False, None)
    assert server.receive(answer(task, [1])).accepted


def test_statistics_move_alike_under_sketches() -> None:
    moved = []
    for history in (VersionHistory(), VersionHistory("sketch", buckets=64)):
        server = Server(
            vector(0, 0, 10), rules.asyncfeded(lam=1, eps=1), history=history, trained=2
        )
        a, b = server.join("a"), server.join("b")
        server.receive(answer(a, [3, 4, 6]))
        server.receive(answer(b, [1.5, 2, -2]))
        moved.append(server.parameters.tolist())
    assert moved[0] == moved[1]


def test_a_rule_that_reads_the_base_needs_exact_versions() -> None:
    with pytest.raises(SettingError, match="'leased' or 'everything' under rule 'fedasync-const"):
        Server(vector(0), rules.fedasync(), history=VersionHistory("sketch"))
