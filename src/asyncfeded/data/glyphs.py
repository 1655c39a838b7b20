"""Generated glyphs in the shape of FEMNIST, for a first try without any data.

Every writer has a hand: one of matplotlib's fonts, a slant, a stroke, a size, an offset, and a
variation from glyph to glyph. Results on these are results on a stand-in, never on FEMNIST.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from asyncfeded import randomness
from asyncfeded.data.femnist import GLYPHS, SIDE, Labels, Pixels, Writer, Writers, split_writer

FONTS = (
    *("DejaVuSans", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSansMono-Oblique"),
    *("DejaVuSerif", "DejaVuSerif-Italic"),
)
DIGITS_SHARE = 0.5
"""About half of FEMNIST's images are digits."""
SCALE = 2
CANVAS = SCALE * SIDE


@dataclass(frozen=True, slots=True)
class Hand:
    """How a writer writes."""

    font: str
    font_size: int
    stroke: int
    slant: float
    turn: float
    width: float
    offset: tuple[float, float]
    unsteadiness: float
    noise: float


def femnist_standin(clients: int, seed: int, sizes: Sequence[int] | None = None) -> Writers:
    """Draw a writer for each client; a smaller draw is a prefix of a larger one.

    `sizes` has the number of images of each writer, in place of 120 to 199.
    """
    counts = [None] * clients if sizes is None else sizes
    return Writers.gather(
        _writer(f"generated-{index}", seed, count) for index, count in enumerate(counts)
    )


def _writer(name: str, seed: int, count: int | None) -> Writer:
    draw = randomness.generator(seed, "hand", name)
    hand = Hand(
        font=FONTS[draw.integers(len(FONTS))],
        font_size=int(draw.integers(36, 47)),
        stroke=int(draw.integers(0, 3)),
        slant=draw.normal(0.0, 0.2),
        turn=draw.normal(0.0, 0.08),
        width=draw.lognormal(0.0, 0.12),
        offset=(draw.normal(0.0, 2.0), draw.normal(0.0, 2.0)),
        unsteadiness=draw.uniform(0.5, 1.5),
        noise=draw.uniform(0.0, 16.0),
    )
    drawn = int(draw.integers(120, 200))
    labels = _labels(draw, drawn if count is None else count)
    glyphs = {label: _glyph(hand, GLYPHS[label]) for label in set(labels.tolist())}
    pixels = np.stack([_written(hand, glyphs[label], draw) for label in labels.tolist()])
    return split_writer(name, pixels, labels)


def _labels(draw: np.random.Generator, count: int) -> Labels:
    digits = sum(map(str.isdigit, GLYPHS))
    letters = len(GLYPHS) - digits
    shares = [DIGITS_SHARE / digits] * digits + [(1 - DIGITS_SHARE) / letters] * letters
    return draw.choice(len(GLYPHS), size=count, p=shares).astype(np.int64)


def _glyph(hand: Hand, glyph: str) -> Image.Image:
    """A glyph in the middle of a canvas of twice the size, ink white."""
    path = Path(mpl.get_data_path()) / "fonts" / "ttf" / f"{hand.font}.ttf"
    font = ImageFont.truetype(path, hand.font_size, layout_engine=ImageFont.Layout.BASIC)
    image = Image.new("L", (CANVAS, CANVAS), 0)
    left, top, right, bottom = font.getbbox(glyph, stroke_width=hand.stroke)
    middle = (CANVAS - left - right) / 2, (CANVAS - top - bottom) / 2
    ImageDraw.Draw(image).text(middle, glyph, fill=255, font=font, stroke_width=hand.stroke)
    return image


def _written(hand: Hand, glyph: Image.Image, draw: np.random.Generator) -> Pixels:
    """The glyph as this hand writes it once: slanted, turned, moved, with noise; ink black."""
    wobble = hand.unsteadiness
    slant = hand.slant + draw.normal(0.0, 0.08 * wobble)
    turn = hand.turn + draw.normal(0.0, 0.08 * wobble)
    width = hand.width * draw.lognormal(0.0, 0.06 * wobble)
    height = draw.lognormal(0.0, 0.06 * wobble)
    move = np.array(hand.offset) + draw.normal(0.0, 1.5 * wobble, 2)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    forward = rotation @ np.array([[width, -slant], [0.0, height]])
    backward = np.linalg.inv(forward)
    middle = np.full(2, CANVAS / 2)
    shift = middle - backward @ (middle + move)
    (a, b), (c, d) = backward
    matrix = (a, b, shift[0], c, d, shift[1])
    image = glyph.transform(
        (CANVAS, CANVAS), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR
    )
    ink = np.asarray(image.reduce(SCALE), dtype=np.float64)
    noisy = 255.0 - ink + draw.normal(0.0, hand.noise, ink.shape)
    return np.clip(np.round(noisy), 0, 255).astype(np.uint8)
