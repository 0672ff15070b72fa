"""The command line: one thin module per command, nothing but parsing and printing."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from tunesmith import __version__
from tunesmith.cli import compare, demo, presets, report, rerank, score
from tunesmith.cli.console import fail
from tunesmith.errors import InputError

app = typer.Typer(
    name="tunesmith",
    help="Learn the weights of models that choose among outputs: re-rank n-best lists, on any "
    "metric, with every published tuner.",
    epilog="Start with: tunesmith demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)
app.add_typer(rerank.app, name="rerank")
app.command("score", epilog=score.EXAMPLES)(score.score)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("presets", epilog=presets.EXAMPLES)(presets.presets)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tunesmith {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; input that cannot be used ends with a message and exit code 2."""
    try:
        app()
    except InputError as error:
        fail(str(error), 2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader has seen enough; the interpreter must not complain about it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), 2)
    except KeyboardInterrupt:
        fail("interrupted; a run with --run goes on with --resume", 130)
