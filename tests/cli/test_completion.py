"""Shell completion."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.running import SECONDS, Cli


def complete(cli: Cli, *words: str) -> list[str]:
    """What the shell is offered after these words, the last of which may be unfinished."""
    env = {
        "_TAKEBACK_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["takeback", *words]),
        "COMP_CWORD": str(len(words)),
    }
    ran = cli.run(env=env)
    assert (ran.code, ran.err) == (0, "")
    return [line.partition(",")[2] for line in ran.out.split()]


def test_commands_and_options_are_completed(cli: Cli):
    assert complete(cli, "re") == ["reach", "redo", "rewind"]
    assert "--dry-run" in complete(cli, "undo", "--d")
    assert not cli.home.lock.exists(), "the Tab key starts no daemon"


def test_names_are_completed_from_a_running_daemon(served: Cli):
    served.json("agents", "add", "juno")
    assert complete(served, "agents", "revoke", "j") == ["juno"]
    assert complete(served, "modules", "enable", "fi") == ["files"]
    assert "files.write" in complete(served, "tools", "call", "files.w")


def test_names_are_nothing_without_a_daemon(cli: Cli):
    assert complete(cli, "agents", "revoke", "j") == []
    assert not cli.home.lock.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_and_installed_only_when_asked(cli: Cli, shell: str):
    home = cli.root / "person"
    env = {"HOME": str(home), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    printed = cli.run("completion", shell, env=env)
    assert printed.code == 0
    assert "_TAKEBACK_COMPLETE" in printed.out
    assert not home.exists()
    installed = cli.run("completion", shell, "--install", "--json", env=env)
    assert installed.code == 0
    path = Path(installed.json["path"])
    assert path.is_relative_to(home)
    assert path.read_text() == printed.out.removesuffix("\n")


def test_the_script_works_in_bash(cli: Cli):
    script = cli.run("completion", "bash").out
    (cli.root / "completion").write_text(script)
    ran = subprocess.run(
        ["bash", "-c", f"source {cli.root}/completion && complete -p takeback"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.stdout.strip().endswith("-F _takeback_completion takeback"), ran


def test_an_unknown_shell_is_a_usage_error(cli: Cli):
    assert cli.run("completion", "csh", "--json").code == 2


def test_a_place_that_cant_be_written_is_said(cli: Cli):
    (cli.root / "person").write_text("no folder")
    env = {"HOME": str(cli.root / "person"), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    ran = cli.run("completion", "bash", "--install", "--json", env=env)
    assert (ran.code, ran.json["error"]["code"]) == (1, "completion.unwritable")
