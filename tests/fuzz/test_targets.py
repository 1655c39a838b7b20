"""Every target takes its own seeds, and stands whatever is changed in them."""

from random import Random

import hypothesis
import pytest
from hypothesis import strategies as st

from fuzz.mutation import mutated_bytes
from fuzz.target import Mutate, accepts, check_memory
from fuzz.targets import TARGETS

EXAMPLES = 60


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_in_little_memory(name: str) -> None:
    target = TARGETS[name]
    taken = [accepts(target, seed) for seed in target.seeds()]
    assert any(taken), "a target that refuses everything proves nothing"
    for seed in target.seeds():
        check_memory(target, seed)


@pytest.mark.parametrize(
    ("name", "mutated"),
    [
        *((name, mutated_bytes) for name in TARGETS),
        *((name, target.mutated) for name, target in TARGETS.items() if target.mutated),
    ],
)
def test_a_target_stands_whatever_is_changed_in_its_seeds(name: str, mutated: Mutate) -> None:
    target = TARGETS[name]
    seeds = list(target.seeds())

    @hypothesis.settings(max_examples=EXAMPLES, derandomize=True, database=None)
    @hypothesis.given(st.sampled_from(seeds), st.integers(0, 2**32))
    def stands(seed: bytes, number: int) -> None:
        accepts(target, mutated(seed, Random(number)))

    stands()
