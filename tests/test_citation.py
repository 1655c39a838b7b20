"""CITATION.cff says what the package says."""

import sys
from pathlib import Path
from typing import Any

import yaml

from asyncfeded import __version__, rules

CITATION: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent.parent / "CITATION.cff").read_text()
)


def test_the_citation_has_the_version_of_the_package() -> None:
    assert CITATION["version"] == __version__


def test_the_citation_names_the_paper_as_the_rule_does() -> None:
    paper = CITATION["preferred-citation"]
    authors = [f"{author['given-names']} {author['family-names']}" for author in paper["authors"]]
    module = sys.modules[rules.asyncfeded.__module__]
    said = " ".join((module.__doc__ or "").split())
    assert f"{', '.join(authors)}: {paper['title']}, {paper['year']}, arXiv:2205.13797" in said
    assert paper["url"].endswith("2205.13797")
