"""Several rules over several seeds side by side."""

from asyncfeded.comparison.comparison import Comparison
from asyncfeded.comparison.figures import RuleFigures

__all__ = ["Comparison", "RuleFigures"]
