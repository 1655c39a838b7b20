"""`asyncfeded resume`: go on with what was interrupted."""

from contextlib import chdir, nullcontext
from importlib import import_module
from pathlib import Path

import click

from asyncfeded.cli.serving import serve_option
from asyncfeded.core.errors import SettingError, StateError

GO_ON = {name: f"asyncfeded.cli.{name}" for name in ("run", "compare", "sweep")}
"""Where each command's way to go on is."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--workers", metavar="INTEGER", help="another number of workers than before")
@click.option("--ray-address", metavar="TEXT", help="where the Ray cluster is now")
@serve_option
def resume(folder: Path, workers: str | None, ray_address: str | None, serve: str | None) -> None:
    """Go on with the run, comparison or sweep in FOLDER, which was interrupted or killed.

    Log, accuracy.csv, clients.csv and model become the same as without the interruption, for any
    number of workers before and after. On Ray, no acknowledged update is lost. Finished runs
    of a comparison and finished trials of a sweep are kept.

    \b
    Examples:
      asyncfeded resume runs/mine
      asyncfeded resume runs/mine --workers 2
    """
    from asyncfeded.experiment.begun import check_code, forget, is_finished, read_begun, saved_in

    out = folder.absolute()
    if is_finished(out) and saved_in(out).is_dir():
        from asyncfeded.experiment.folders import folders_to_go_on_in

        with folders_to_go_on_in([out]):
            forget(out)  # a process was killed before it could
    begun = read_begun(out)
    if begun.command not in GO_ON:
        raise StateError(f"{str(out)!r} is damaged: there is no command {begun.command!r:.20}")
    given = {"workers": workers, "ray_address": ray_address}
    if serve is not None:
        if begun.command != "run":
            raise SettingError(f"serve must be left out for a {begun.command}: it is for one run")
        begun = begun.model_copy(update={"options": {**begun.options, "serve": serve}})
    changed = {name: value for name, value in given.items() if value is not None}
    there = Path(begun.folder)
    with chdir(there) if there.is_dir() else nullcontext():
        check_code(begun)
        import_module(GO_ON[begun.command]).go_on(out, begun, changed)
