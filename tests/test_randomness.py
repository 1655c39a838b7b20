import numpy as np

from asyncfeded import randomness


def test_a_passing_generator_draws_what_one_of_its_own_would() -> None:
    for number in range(3):
        arguments = 7, "purpose", "client-1", number
        kept, passing = randomness.generator(*arguments), randomness.passing_generator(*arguments)
        assert kept.random() == passing.random()
        assert kept.integers(10, size=3).tolist() == passing.integers(10, size=3).tolist()
        assert np.array_equal(kept.permutation(9), passing.permutation(9))
        # Left in the middle of a word and of a normal pair, it still begins the next key afresh.
        assert kept.integers(2**32, dtype=np.uint32) == passing.integers(2**32, dtype=np.uint32)


def test_a_passing_generator_does_not_touch_those_that_were_kept() -> None:
    kept = randomness.generator(0, "a")
    first = kept.random()
    randomness.passing_generator(0, "b").random(100)
    again = randomness.generator(0, "a")
    assert [first, kept.random()] == [again.random(), again.random()]
