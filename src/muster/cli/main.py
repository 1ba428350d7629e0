"""The `muster` command: which verbs there are, and what an error looks like.  No logic lives here.

Each verb is a function in a module of its own that imports nothing heavy until it is called, so that
`muster --help` answers at once.
"""

import errno
import sys
from typing import Annotated

import typer

import muster
from muster.base.errors import ApiError, ConfigError, ObjectInvalid
from muster.base.printing import printable
from muster.cli import node
from muster.cli.check import check
from muster.cli.demo import demo
from muster.cli.explain import explain
from muster.cli.run import run
from muster.cli.simulate import simulate
from muster.cli.up import up

USAGE_ERROR = 2
API_ERROR = 1

app = typer.Typer(
    name="muster",
    help="The all-or-nothing scheduler for Kubernetes: a group of pods gets all it needs, or holds nothing.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

for verb in (demo, up, run, check, explain, simulate):
    app.command()(verb)
app.add_typer(node.app, name="node")


def _print_version(*, wanted: bool) -> None:
    if wanted:
        print(f"muster {muster.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=lambda v: _print_version(wanted=v),
            is_eager=True,
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; errors a user can mend are one line and a hint, with exit code 2 or 1."""
    try:
        app()
    except ConfigError as error:
        print(f"muster: {printable(str(error))}", file=sys.stderr)
        if error.hint:
            print(f"hint: {printable(error.hint)}", file=sys.stderr)
        sys.exit(USAGE_ERROR)
    except (ApiError, ObjectInvalid) as error:
        print(f"muster: {printable(str(error))}", file=sys.stderr)
        sys.exit(API_ERROR)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"muster: {error.strerror}", file=sys.stderr)
        sys.exit(API_ERROR)
