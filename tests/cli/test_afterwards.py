"""What the demo ends with can be typed as it stands."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from takeback_doors.cli.demo.afterwards import afterwards
from takeback_doors.cli.main import cli


def commands() -> list[str]:
    """The commands that are shown, without what is said of them."""
    return [line.strip().partition("  #")[0] for line in afterwards() if line.startswith("    ")]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Python and a `takeback` beside it, where a shell does not look."""
    folder = tmp_path / "it's here" / "bin"
    folder.mkdir(parents=True)
    (folder / "takeback").write_text("#!/bin/sh\n")
    (folder / "takeback").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return folder


def test_each_command_is_one(own: Path):
    shown = [shlex.split(command)[1] for command in commands() if command.startswith("takeback")]
    assert len(shown) == 3
    assert set(shown) <= set(cli.list_commands(click.Context(cli)))
    assert max(map(len, afterwards())) <= 80 or "export" in max(afterwards(), key=len)


def test_a_shell_is_told_where_takeback_is(own: Path):
    line = commands()[0]
    found = subprocess.run(
        ["sh", "-c", f"{line}; command -v takeback"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(own / "takeback")


def test_a_shell_that_finds_it_is_told_nothing(own: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(own), prepend=os.pathsep)
    assert commands()[0].startswith("takeback run")
