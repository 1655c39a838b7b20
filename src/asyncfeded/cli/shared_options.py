"""Options and a folder that `run` and `compare` share."""

import re
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from asyncfeded.cli.steps import Steps
from asyncfeded.experiment.settings import RunSettings
from asyncfeded.tasks.folders import FORMATS, dataset_folder

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="a TOML file with the same names, such as suspension = 0.1; options override it",
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="replace the results that the folder holds"
)


def with_folder(settings: RunSettings, name: str, given: Mapping[str, Any]) -> RunSettings:
    """Without a folder of the user's, one that other settings do not share."""
    if settings.out is not None:
        return settings
    said = sorted((setting, str(value)) for setting, value in given.items())
    digest = sha256(repr(said).encode()).hexdigest()[:6]
    return settings.model_copy(update={"out": Path("runs") / f"{plain_name(name)}-{digest}"})


def plain_name(name: str) -> str:
    """A name for a folder: a rule or a task may be named by its place, such as my.py:momentum."""
    return re.sub(r"[^\w.-]+", "-", name)


def begin_loading(settings: RunSettings, step: Steps) -> None:
    """Say at a terminal why nothing happens yet: torch takes seconds to load.

    Data that are not there are found before that.
    """
    step("loading torch and the data", said=False)
    if settings.task in FORMATS:
        dataset_folder(settings.task, settings.data_dir)
    if sys.stderr.isatty():
        click.echo("loading torch and the data …", err=True)
