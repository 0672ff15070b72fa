"""The command line: one thin module per command, nothing but parsing and printing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tunesmith import __version__
from tunesmith.cli import (
    compare,
    demo,
    features,
    inspect,
    lm,
    presets,
    report,
    rerank,
    score,
    structured,
    train,
    translate,
    tune,
)
from tunesmith.cli.console import fail
from tunesmith.errors import InputError

# The key under which a context keeps the words of its command line.
WORDS = "tunesmith.words"


@contextmanager
def no_traceback(words: Sequence[str]) -> Iterator[None]:
    """Turn errors into a message and exit code 2, an interruption into exit code 130.

    `words` is the command line.
    """
    try:
        yield
        # Flush now: writing the rest of the buffer may still fail.
        sys.stdout.flush()
    except InputError as error:
        fail(str(error), 2)
    except KeyboardInterrupt:
        kept = any(word.partition("=")[0] == "--run" for word in words)
        more = " (a run with --run continues with --resume)" if kept else ""
        fail(f"interrupted{more}", 130)
    except OSError as error:
        if error.filename is not None:
            reason = f"{error.filename}: {error.strerror or error}"
            fail(f"{reason} (check the path, its permissions and the free space)", 2)
        # Keep the interpreter from writing the rest when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(141)  # The reader stopped reading, as `head` does.
        reason = f"standard output: {error.strerror or error}"
        fail(f"{reason} (check what it is directed to, and the free space)", 2)


class Commands(TyperGroup):
    """All commands, in the order of a typical workflow."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return [
            *("demo", "rerank", "score", "compare", "report", "presets"),
            *("train", "inspect", "features", "tune", "translate", "lm", "structured"),
        ]

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Parse the command line; this also prints the help."""
        words = tuple(args)
        with no_traceback(words):
            context = super().make_context(info_name, args, parent, **extra)
            context.meta[WORDS] = words
            return context

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with no_traceback(ctx.meta[WORDS]):
            return super().invoke(ctx)


app = typer.Typer(
    name="tunesmith",
    cls=Commands,
    help="Learn the weights of models that choose among outputs: re-rank n-best\n"
    "lists, on any metric, with every published tuner.",
    epilog="Start with: tunesmith demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(rerank.app, name="rerank")
app.command("score", epilog=score.EXAMPLES)(score.score)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("presets", epilog=presets.EXAMPLES)(presets.presets)
app.command("train", epilog=train.EXAMPLES)(train.train)
app.command("inspect", epilog=inspect.EXAMPLES)(inspect.inspect)
app.command("features", epilog=features.EXAMPLES)(features.features)
app.command("tune", cls=tune.PairsCommand, epilog=tune.EXAMPLES)(tune.tune)
app.command("translate", epilog=translate.EXAMPLES)(translate.translate)
app.add_typer(lm.app, name="lm")
app.add_typer(structured.app, name="structured")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tunesmith {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version.", callback=_version, is_eager=True, metavar=""
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    app()
