"""`asyncfeded data`: fetch data sets, list them, show how they are shared out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

from asyncfeded.cli.output import make_console, say
from asyncfeded.cli.shared_options import begin_loading
from asyncfeded.cli.steps import Steps
from asyncfeded.core.errors import FileError
from asyncfeded.data.columns import KINDS
from asyncfeded.data.partition import Scheme
from asyncfeded.tasks.folders import FORMATS

if TYPE_CHECKING:
    from asyncfeded.experiment.catalogue import Entry
    from asyncfeded.experiment.shares import Dealing

data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="where data sets lie [default: ASYNCFEDED_DATA_DIR or a user folder]",
)


PICTURES = (".png", ".svg", ".pdf")
OF_BOTH = ("clients", "data_seed")
SETTINGS_OF_TASKS = ("min_examples", "max_examples", "split", "data_dir")
OF_TASKS = (*SETTINGS_OF_TASKS, "samples")
OF_PARTITIONS = {"dirichlet": "alpha", "shards": "shards_per_client", "column": "column"}
OF_FILES = ("partition", "alpha", "shards_per_client", "labels", "column")


def _picture(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a name that is not a picture's."""
    if path is not None and path.suffix not in PICTURES:
        raise click.BadParameter(f"must end in {', '.join(PICTURES)}; given {str(path)!r}")
    return path


@click.group()
def data() -> None:
    """Fetch data sets, list them, and show how they are shared out."""


@data.command("fetch")
@click.argument("name", type=click.Choice(list(FORMATS)))
@data_dir_option
def fetch_command(name: str, data_dir: Path | None) -> None:
    """Download FEMNIST or Shakespeare from the Hugging Face hub.

    Needs the library 'datasets': pip install -c constraints.txt '.[hub]'.
    """
    from rich.progress import Progress

    from asyncfeded.experiment.catalogue import fetch

    console = make_console()
    say(console, f"downloading {name}: this may take minutes")
    with (
        Steps(console) as step,
        Progress(console=console, disable=not console.is_terminal) as progress,
    ):
        step(f"downloading {name}", said=False)
        bar = progress.add_task(f"reading {name}", total=None)
        entry = fetch(
            name, data_dir, lambda done, of: progress.update(bar, completed=done, total=of)
        )
    say(console, f"{name}: {entry.clients} clients, {entry.examples} examples in {entry.where}")


@data.command("list")
@data_dir_option
def list_command(data_dir: Path | None) -> None:
    """Say which data sets there are, with their clients, examples and classes."""
    from asyncfeded.experiment.catalogue import entries
    from asyncfeded.report.tables import table

    found = entries(data_dir)
    console = make_console()
    headings = ["data set", "clients", "examples", "classes"]
    console.print(table("", headings, [_row(entry) for entry in found]))
    for entry in found:
        say(console, f"{entry.name}: {entry.where}")


@data.command()
@click.argument("what", metavar="TASK|FILE")
@click.option("--clients", default=10, show_default=True, help="how many clients")
@click.option(
    "--data-seed",
    default=0,
    show_default=True,
    help="the seed by which clients are chosen or a file is dealt out",
)
@click.option(
    "--min-examples", type=int, help="of a task: choose clients with at least this many examples"
)
@click.option(
    "--max-examples", type=int, help="of a task: use at most this many examples of a client"
)
@click.option(
    "--split",
    type=click.Choice(("auto", "position", "random")),
    default="auto",
    show_default=True,
    help="of shakespeare: which windows are for testing",
)
@data_dir_option
@click.option(
    "--partition",
    type=click.Choice(get_args(Scheme)),
    default="iid",
    show_default=True,
    help="of a file: how it is dealt out to clients",
)
@click.option("--alpha", default=0.5, show_default=True, help="of the Dirichlet distribution")
@click.option("--shards-per-client", default=2, show_default=True, help="of the partition shards")
@click.option("--labels", default="y", show_default=True, help="the array or column of labels")
@click.option("--column", help="the array or column with the client of each example")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("classes.png"),
    show_default=True,
    callback=_picture,
    help="the picture of classes",
)
@click.option(
    "--samples",
    type=click.Path(path_type=Path),
    metavar="PICTURE",
    callback=_picture,
    help="of a task with images: also draw some of each client's, to this file",
)
def show(what: str, out: Path, samples: Path | None, **options: Any) -> None:
    """Draw how many examples of each class each client has.

    \b
    Examples:
      asyncfeded data show femnist-standin --samples glyphs.png
      asyncfeded data show femnist --clients 20 --min-examples 120
      asyncfeded data show my.npz --partition dirichlet --alpha 0.3 --clients 20
      asyncfeded data show my.csv --labels species --partition column --column site
    """
    from asyncfeded.experiment.settings import run_settings
    from asyncfeded.tasks.registry import find_task

    is_file = Path(what).suffix.lower() in KINDS or Path(what).is_file()
    if is_file and not Path(what).is_file():
        raise FileError(f"{what!r} cannot be read: there is no such file")
    _refuse_given(OF_TASKS if is_file else OF_FILES, "a task" if is_file else "a file", what)
    for scheme, name in OF_PARTITIONS.items():
        if options["partition"] != scheme:
            _refuse_given((name,), f"--partition {scheme}", f"--partition {options['partition']}")
    if not is_file:
        given = {name: options[name] for name in OF_BOTH + SETTINGS_OF_TASKS}
        settings = run_settings({"task": what, **{n: v for n, v in given.items() if v is not None}})

    console = make_console()
    with Steps(console) as step:
        if is_file:
            step(f"reading {what}", said=False)
        else:
            begin_loading(settings, step)
        from asyncfeded.experiment.run import load_data
        from asyncfeded.experiment.shares import draw_samples, shares_of, shares_of_file

        if is_file:
            shares = shares_of_file(Path(what), _dealing(options))
        else:
            chosen, title = load_data(settings), find_task(what).title
            if samples is not None:
                draw_samples(samples, chosen, title)
            shares = shares_of(chosen, title)
        shares.plot(out)
    totals = [int(row.sum()) for row in shares.counts.values()]
    classes = [int((row > 0).sum()) for row in shares.counts.values()]
    say(
        console,
        f"{shares.title}: {len(totals)} clients, {sum(totals):,} examples "
        f"({min(totals):,} to {max(totals):,} each), {len(shares.classes)} classes "
        f"({min(classes)} to {max(classes)} each)\nplot: {out}",
    )
    if samples is not None:
        say(console, f"samples: {samples}")


def _refuse_given(names: Sequence[str], owner: str, instead: str) -> None:
    """Refuse options that would have no effect."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for {owner}; given with {instead}"
            )


def _dealing(options: Mapping[str, Any]) -> "Dealing":
    from asyncfeded.experiment.shares import Dealing

    return Dealing(
        scheme=options["partition"],
        clients=options["clients"],
        seed=options["data_seed"],
        alpha=options["alpha"],
        shards_per_client=options["shards_per_client"],
        labels=options["labels"],
        column=options["column"],
    )


def _row(entry: "Entry") -> tuple[str, ...]:
    return entry.name, entry.clients, entry.examples, str(entry.classes)
