"""`takeback completion`"""

from __future__ import annotations

import os
from pathlib import Path

import click

from takeback.errors import TakebackError
from takeback_doors.cli.output import say
from takeback_doors.cli.shell import Shell, without_start

_SHELLS = ("bash", "zsh", "fish")


@click.command(no_args_is_help=True)
@click.argument("shell_name", metavar="[bash|zsh|fish]", type=click.Choice(_SHELLS))
@click.option("--install", is_flag=True, help="Write it to where that shell looks, instead of to stdout.")
@without_start
def completion(shell: Shell, shell_name: str, install: bool) -> None:
    """Print a shell's completion script.

    With it the shell completes commands, options, and the names of agents, tools and modules.
    """
    script = _script(shell_name)
    if not install:
        shell.answer({"script": script}, lambda: click.echo(script))
        return
    path = _target(shell_name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")
    except OSError as error:
        raise TakebackError(
            "completion.unwritable",
            f"The script can't be written to {path}: {error.strerror}",
            f"Write it yourself: takeback completion {shell_name} > FILE",
        ) from None
    shell.answer({"path": str(path)}, lambda: _tell(shell_name, path))


def _script(shell_name: str) -> str:
    from click.shell_completion import get_completion_class

    from takeback_doors.cli.main import cli

    made = get_completion_class(shell_name)
    if made is None:
        raise TakebackError("completion.unknown", f"click can't complete for {shell_name}")
    # source_template and its variables alone: source() would run bash to look at its version.
    parts = made(cli, {}, "takeback", "_TAKEBACK_COMPLETE")
    return made.source_template % parts.source_vars()


def _target(shell_name: str) -> Path:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return {
        "bash": data / "bash-completion/completions/takeback",
        "zsh": data / "zsh/site-functions/_takeback",
        "fish": config / "fish/completions/takeback.fish",
    }[shell_name]


def _tell(shell_name: str, path: Path) -> None:
    say(f"Written to {path}. New shells complete takeback.")
    if shell_name == "zsh":
        say(f"In .zshrc, before compinit: fpath=({path.parent} $fpath)")
