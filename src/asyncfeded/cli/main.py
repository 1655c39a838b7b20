"""The command `asyncfeded`: what it offers, and how it ends.

A command is loaded when it is called or when the help lists it, and what it runs on when it runs.
"""

import atexit
import gc
import os
import signal
import sys
from io import TextIOWrapper
from types import FrameType

import click

from asyncfeded.cli.added import OpenGroup
from asyncfeded.cli.interrupted import Interrupted
from asyncfeded.core.errors import AsyncFedEDError
from asyncfeded.version import __version__

USAGE_ERROR = 2
INTERRUPTED = 130
OF_TORCH = ("torch", "matplotlib", "PIL", "scipy", "threadpoolctl")
"""Modules that the extra `torch` installs."""
COMMANDS = {
    "run": "asyncfeded.cli.run:run",
    "resume": "asyncfeded.cli.resume:resume",
    "check-rule": "asyncfeded.cli.check_rule:check_rule",
    "compare": "asyncfeded.cli.compare:compare",
    "sweep": "asyncfeded.cli.sweep:sweep",
    "data": "asyncfeded.cli.data:data",
}


@click.group(
    cls=OpenGroup,
    ours=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="asyncfeded")
def cli() -> None:
    """Asynchronous federated learning on a virtual clock, or on Ray in real time.

    \b
    asyncfeded run --rule asyncfeded --seconds 60      one rule
    asyncfeded resume runs/mine                        go on with a run that was interrupted
    asyncfeded compare --seconds 60                    the five rules of the paper
    asyncfeded sweep --search lam=0.1:10:log …         good hyperparameters of a rule
    asyncfeded paper --workers 2                       the paper's figures (first: make paper)
    asyncfeded data list                               the data sets that are there
    asyncfeded run --rule my_rule.py:momentum          a rule of your own
    """


def main() -> None:
    """Run the command line; what the user can mend is said in one line, with exit code 2."""
    _let_sigterm_interrupt()
    _show_any_text()
    # At its end Python would look through all that torch and others have made: a silent second.
    atexit.register(gc.freeze)
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(USAGE_ERROR)
    except click.ClickException as error:
        _fail(error.format_message())
    except AsyncFedEDError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if error.name not in OF_TORCH:
            raise
        _fail(f"{error.name} is not installed, which this needs: pip install 'asyncfeded[torch]'")
    except OSError as error:
        _fail(f"{error.filename or 'a file'} cannot be read or written: {error.strerror}")
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except Interrupted as interrupt:
        go_on = f"to go on: {interrupt.command}; " if interrupt.command else ""
        click.echo(f"\ninterrupted; {go_on}{interrupt.left}", err=True)
        sys.exit(INTERRUPTED)


def _show_any_text() -> None:
    """Write what the locale cannot show as an escape, such as \\u03b3 for γ, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _let_sigterm_interrupt() -> None:
    """Let SIGTERM end this process as Ctrl-C does; one that was forked from it just ends."""
    this = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == this:
            signal.default_int_handler(number, frame)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _fail(message: str) -> None:
    click.echo("error: " + " ".join(message.split()), err=True)
    sys.exit(USAGE_ERROR)
