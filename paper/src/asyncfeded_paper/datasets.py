"""The data of runs: loaded once for all runs that share them."""

from functools import cache

from asyncfeded.data import FederatedData
from asyncfeded.experiment import RunSettings, load_data

CHOICE = {
    *("task", "clients", "data_seed", "data_dir", "min_examples", "max_examples"),
    *("split", "devices"),
}
"""The settings that decide which data a run has."""


def data_for(settings: RunSettings) -> FederatedData:
    """The data of a run."""
    return _data(_choice(settings))


def digest_for(settings: RunSettings) -> str:
    """The digest of a run's data."""
    return _digest(_choice(settings))


def _choice(settings: RunSettings) -> str:
    return settings.model_dump_json(include=CHOICE)


@cache
def _data(choice: str) -> FederatedData:
    return load_data(RunSettings.model_validate_json(choice))


@cache
def _digest(choice: str) -> str:
    return _data(choice).sha256
