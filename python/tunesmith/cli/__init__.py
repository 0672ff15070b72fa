"""The command line: one thin module per command, nothing but parsing and printing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from tunesmith import __version__
from tunesmith.cli.console import fail
from tunesmith.errors import InputError, out_of_memory

# The commands in the order of a typical workflow. Each is a module of this package that holds a
# function of the same name and EXAMPLES, or `app` where it has commands of its own.
COMMANDS = (
    *("demo", "rerank", "score", "compare", "report", "presets"),
    *("train", "inspect", "features", "tune", "translate", "analyse", "reachability", "lm"),
    *("local", "serve", "token", "structured", "experiment", "simulate"),
)
# The key under which a context keeps the words of its command line.
WORDS = "tunesmith.words"
NO_MEMORY = "out of memory (give it more memory, less data, or fewer threads: --threads 1)"


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
    except (MemoryError, ImportError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        fail(NO_MEMORY, 2)
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
    """All commands; a command is imported when it is asked for, which keeps the others fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, None if there is none."""
        return load(cmd_name) if cmd_name in COMMANDS else None

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


@cache
def load(name: str) -> Any:
    """Return a command by its name; raise if there is none."""
    module = import_module(f"tunesmith.cli.{name}")
    alone = typer.Typer(**_SHARED)
    if hasattr(module, "app"):
        alone.add_typer(module.app, name=name)
    else:
        made = alone.command(name, cls=getattr(module, "CLASS", None), epilog=module.EXAMPLES)
        made(getattr(module, name))
    return get_group(alone).commands[name]


_SHARED: dict[str, Any] = {
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
}
app = typer.Typer(
    name="tunesmith",
    cls=Commands,
    help="Learn the weights of models that choose among outputs: re-rank n-best\n"
    "lists, on any metric, with every published tuner.",
    epilog="Start with: tunesmith demo",
    no_args_is_help=True,
    **_SHARED,
)


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
