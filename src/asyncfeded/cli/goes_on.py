"""The folder of a command's results: the command begins in it, is interrupted there, or goes on."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from asyncfeded.cli.interrupted import OF_A_RUN, Interrupted
from asyncfeded.experiment.begun import Begun, forget, write_begun
from asyncfeded.experiment.folders import folders_to_go_on_in, result_folders
from asyncfeded.experiment.settings import RunSettings

How = Literal["begin", "overwrite", "go on"]
"""What a command does with its folders."""


@contextmanager
def opened(
    settings: RunSettings,
    folders: Mapping[Path, Iterable[str]],
    how: How,
    begun: Begun,
    left: str = OF_A_RUN,
) -> Iterator[None]:
    """Keep the folders for this command; what was saved goes when the block is done.

    `left` tells whoever interrupts it what is there.
    """
    out, is_saved = settings.out, settings.checkpoint_every != 0
    assert out is not None
    again = folders_to_go_on_in(folders)
    with again if how == "go on" else result_folders(folders, how == "overwrite"):
        if how != "go on" and is_saved:
            write_begun(out, begun)
        try:
            yield
        except KeyboardInterrupt:
            command = f"asyncfeded resume {shlex.quote(str(out))}" if is_saved else None
            raise Interrupted(left, command) from None
        except Exception:
            files = [folder / name for folder, names in folders.items() for name in names]
            if not any(map(os.path.lexists, files)):
                forget(out)  # it failed before anything was done: nothing is there to go on with
            raise
        for folder in folders:
            forget(folder)
