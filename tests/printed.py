"""Comparing what code prints with what a document says that it prints."""

import re
from math import isclose

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def differences(expected: str, printed: str) -> list[str]:
    """The lines that differ, with the line that was printed instead.

    Everything must be the same, but for the last digit of a number with decimals: matrix products,
    and so the bits of training, differ between processors.
    """
    left, right = expected.splitlines(), printed.splitlines()
    length = max(len(left), len(right))
    left += ["(nothing)"] * (length - len(left))
    right += ["(nothing)"] * (length - len(right))
    return [f"{a!r}, printed {b!r}" for a, b in zip(left, right, strict=True) if not alike(a, b)]


def alike(expected: str, printed: str) -> bool:
    """Whether two lines differ at most in the last digits of numbers with decimals."""
    numbers, found = NUMBER.findall(expected), NUMBER.findall(printed)
    if NUMBER.split(expected) != NUMBER.split(printed) or len(numbers) != len(found):
        return False
    return all(map(_alike_numbers, numbers, found))


def _alike_numbers(expected: str, found: str) -> bool:
    decimals = len(expected.partition(".")[2])
    if decimals == 0 or len(found.partition(".")[2]) != decimals:
        return expected == found
    return isclose(float(expected), float(found), rel_tol=0, abs_tol=1.01 * 10**-decimals)
