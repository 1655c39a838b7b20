"""Small folders in the formats of real data, made for a test."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asyncfeded import randomness
from asyncfeded.data.roles import LETTERS, WINDOW

TEXT = "To be, or not to be: that is the question, whether it is nobler in the mind to suffer. "


def decode(codes: npt.NDArray[np.integer[Any]]) -> str:
    """The text of these classes; other characters come back as �."""
    return "".join((LETTERS + "�")[code] for code in codes)


def image(*key: int) -> list[float]:
    """784 pixels as LEAF writes them, different for every key."""
    draw = np.random.default_rng(key)
    return [round(value / 255, 6) for value in draw.integers(0, 256, 784).tolist()]


def shard(users: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A shard as LEAF writes it."""
    return {
        "users": list(users),
        "num_samples": [len(user["y"]) for user in users.values()],
        "user_data": users,
    }


def write_side(folder: Path, side: str, number: int, users: dict[str, dict[str, Any]]) -> Path:
    """Write one shard of a side."""
    path = folder / side / f"all_data_{number}_niid_05_keep_0_{side}_9.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(shard(users)))
    return path


def write_femnist(folder: Path, sizes: dict[str, tuple[int, int]], per_shard: int = 2) -> Path:
    """LEAF's FEMNIST with so many training and test images per writer."""
    names = list(sizes)
    for number, start in enumerate(range(0, len(names), per_shard)):
        for which, side in enumerate(("train", "test")):
            users = {
                name: {
                    "x": [image(names.index(name), which, i) for i in range(sizes[name][which])],
                    "y": [i % 62 for i in range(sizes[name][which])],
                }
                for name in names[start : start + per_shard]
            }
            write_side(folder, side, number, users)
    return folder


def speech(name: str, length: int) -> str:
    """A text of this length, different for every name."""
    draw = randomness.generator(0, "speech-of-a-test", name)
    letters = list("abcdefghijklmnopqrstuvwxyz ,.")
    return "".join(draw.choice(letters, size=length).tolist())


def write_roles(folder: Path, lengths: dict[str, int]) -> Path:
    """A gzipped file of roles with texts of these lengths."""
    folder.mkdir(parents=True, exist_ok=True)
    roles = {n: {"play": "A Test", "speaker": n, "text": speech(n, k)} for n, k in lengths.items()}
    with gzip.open(folder / "roles.json.gz", "wt") as file:
        json.dump(roles, file)
    return folder


def windows(text: str) -> list[tuple[str, str]]:
    """All windows of a text, with the character after each."""
    starts = range(len(text) - WINDOW)
    return [(text[i : i + WINDOW], text[i + WINDOW]) for i in starts]


def write_leaf_shakespeare(folder: Path, texts: dict[str, str]) -> Path:
    """LEAF's Shakespeare: the first nine tenths of the windows, and the last after 79 left out."""
    for side in ("train", "test"):
        users = {}
        for name, text in texts.items():
            every = windows(text)
            cut = int(0.9 * len(every))
            chosen = every[:cut] if side == "train" else every[cut + WINDOW - 1 :]
            users[name] = {"x": [x for x, _ in chosen], "y": [y for _, y in chosen]}
        write_side(folder, side, 0, users)
    return folder
