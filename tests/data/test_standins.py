import numpy as np
import pytest

from asyncfeded.data.femnist import GLYPHS
from asyncfeded.data.glyphs import femnist_standin
from asyncfeded.data.roles import OTHER
from asyncfeded.data.verses import shakespeare_standin
from asyncfeded.tasks.paper_task import DataChoice
from asyncfeded.tasks.registry import find_task
from leaf_folders import decode


def test_glyphs_are_seeded_and_fewer_writers_are_the_first_of_more() -> None:
    two, three = femnist_standin(2, seed=0), femnist_standin(3, seed=0)
    assert three.names[:2] == two.names
    for name in two.names:
        assert np.array_equal(two.writer(name).pixels, three.writer(name).pixels)
    assert not np.array_equal(
        femnist_standin(1, seed=1).writer("generated-0").pixels[:5],
        two.writer("generated-0").pixels[:5],
    )


def test_glyphs_have_the_shape_of_femnist() -> None:
    writers = femnist_standin(6, seed=0)
    assert writers.pixels.dtype == np.uint8
    assert writers.pixels.shape[1:] == (28, 28)
    assert set(writers.labels.tolist()) == set(range(62))
    assert GLYPHS[0] + GLYPHS[10] + GLYPHS[36] == "0Aa"
    # White paper with black ink: every image has both, and far more paper than ink.
    assert (writers.pixels.reshape(len(writers.pixels), -1).min(axis=1) < 100).all()
    assert 0.7 < (writers.pixels > 200).mean() < 0.97


def test_a_writer_has_a_hand_of_its_own() -> None:
    # The mean image of a writer's digits lies nearer to its own others than to other writers'.
    writers = femnist_standin(8, seed=0)
    means = []
    for name in writers.names:
        writer = writers.writer(name)
        digits = writer.pixels[writer.labels < 10].astype(float)
        means.append((digits[::2].mean(axis=0), digits[1::2].mean(axis=0)))
    own = [np.abs(a - b).mean() for a, b in means]
    others = [
        np.abs(means[i][0] - means[j][1]).mean() for i in range(8) for j in range(8) if i != j
    ]
    assert np.mean(own) < 0.7 * np.mean(others)


def test_the_same_glyph_is_never_written_twice_alike() -> None:
    writers = femnist_standin(2, seed=0)
    assert len({image.tobytes() for image in writers.pixels}) == len(writers.pixels)


def test_speech_is_seeded_and_made_of_sentences() -> None:
    two, three = shakespeare_standin(2, seed=0), shakespeare_standin(3, seed=0)
    for name in two.names:
        assert np.array_equal(two.role(name).codes, three.role(name).codes)
    text = decode(two.role("generated-0").codes)
    assert OTHER not in two.codes
    assert len(text) > 10_000
    assert text[0].isupper()
    assert text[-1] in ".!?"


def test_roles_have_statistics_of_their_own() -> None:
    roles = shakespeare_standin(4, seed=0)
    lengths, favourites = set(), set()
    for name in roles.names:
        text = decode(roles.role(name).codes)
        words = text.lower().replace(".", " ").replace(",", " ").replace("!", " ").split()
        favourites.add(max(set(words), key=words.count))
        lengths.add(round(len(words) / sum(text.count(mark) for mark in ".!?"), 1))
    assert len(lengths) == 4
    assert len(favourites) > 1


@pytest.mark.parametrize("name", ["femnist-standin", "shakespeare-standin"])
def test_stand_ins_never_go_under_the_real_name(name: str) -> None:
    data = find_task(name).make_data(DataChoice(clients=2, seed=0))
    assert data.name == name
    assert all(source.startswith("generated-") for source in data.sources.values())
