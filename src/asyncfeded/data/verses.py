"""Generated speech in the shape of Shakespeare's roles, for a first try without any data.

All roles speak the same made-up language: a few hundred words of syllables, some of them common.
Every role has its own favourite words, length of sentence and punctuation. Results on these are
results on a stand-in, never on Shakespeare.
"""

import numpy as np

from asyncfeded import randomness
from asyncfeded.data.roles import Role, Roles, encode

ONSETS = (
    "",
    "b",
    "br",
    "c",
    "d",
    "f",
    "g",
    "h",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "st",
    "t",
    "th",
    "w",
)
VOWELS = ("a", "e", "ea", "i", "o", "ou", "u")
CODAS = ("", "d", "l", "m", "n", "nd", "r", "s", "st", "t", "th")
WORDS = 300
ZIPF = 0.7
CHARACTERS = 20_000


def shakespeare_standin(clients: int, seed: int) -> Roles:
    """Make up a role for each client; a smaller draw is a prefix of a larger one."""
    words = _language(seed)
    return Roles.gather(_role(f"generated-{index}", words, seed) for index in range(clients))


def _language(seed: int) -> list[str]:
    """Different words; common words are short."""
    draw = randomness.generator(seed, "language")
    words: dict[str, None] = {}
    while len(words) < WORDS:
        syllables = 1 + int(draw.random() < len(words) / WORDS) + int(draw.random() < 0.2)
        parts = [
            ONSETS[draw.integers(len(ONSETS))]
            + VOWELS[draw.integers(len(VOWELS))]
            + CODAS[draw.integers(len(CODAS))]
            for _ in range(syllables)
        ]
        words["".join(parts)] = None
    return list(words)


def _role(name: str, words: list[str], seed: int) -> Role:
    draw = randomness.generator(seed, "speech", name)
    weights = np.arange(1, len(words) + 1) ** -ZIPF * draw.lognormal(0.0, 1.0, len(words))
    shares = weights / weights.sum()
    sentence_words = draw.uniform(5.0, 14.0)
    commas = draw.uniform(0.05, 0.2)
    endings = draw.dirichlet((6.0, 1.0, 1.0))
    sentences: list[str] = []
    length = 0
    while length < CHARACTERS:
        count = 2 + int(draw.poisson(sentence_words - 2))
        chosen = [words[index] for index in draw.choice(len(words), size=count, p=shares)]
        pauses = np.append(draw.random(count - 1) < commas, False)
        spoken = [f"{word}," if pause else word for word, pause in zip(chosen, pauses, strict=True)]
        ending = ".!?"[draw.choice(3, p=endings)]
        sentence = " ".join(spoken).capitalize() + ending
        sentences.append(sentence)
        length += len(sentence) + 1
    speech = " ".join(sentences)
    return Role(name, encode(speech), np.array([len(speech)], dtype=np.int64))
