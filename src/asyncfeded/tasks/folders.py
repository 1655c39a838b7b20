"""Where data sets lie."""

import os
from pathlib import Path

from platformdirs import user_data_path

from asyncfeded.core.errors import FileError

DATA_DIR_VARIABLE = "ASYNCFEDED_DATA_DIR"
FORMATS = {"femnist": "LEAF's json", "shakespeare": "a roles.json or LEAF's json"}


def data_folder(data_dir: Path | None) -> Path:
    """Where data sets lie: as given, as the environment says, or the user's data folder."""
    if data_dir is None:
        given = os.environ.get(DATA_DIR_VARIABLE)
        data_dir = Path(given) if given else user_data_path("asyncfeded")
    return data_dir.expanduser()


def dataset_folder(name: str, data_dir: Path | None) -> Path:
    """The folder of a data set, which must be there."""
    folder = data_folder(data_dir) / name
    if not folder.is_dir():
        raise FileError(
            f"task {name!r} needs data in {str(folder)!r}, which is not there: run 'asyncfeded "
            f"data fetch {name}', or put {FORMATS[name]} there, or say where it is with --data-dir "
            f"or {DATA_DIR_VARIABLE}; --task {name}-standin needs no data"
        )
    return folder
