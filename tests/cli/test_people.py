"""What a person sees: tables that fit, colours where they are wanted, and no trick of a file's name."""

import json
import subprocess
from pathlib import Path

import pytest

from takeback_doors.cli.plain import resource_name, visible
from tests.cli.running import Cli
from tests.cli.terminal import Terminal

HOSTILE = "a\x1b[2Jb\x07\u202egnp.exe\u200b\u2066\x9b31m\n\r\tc"
RAW = ("\x1b[2J", "\x07", "\u202e", "\u200b", "\u2066", "\x9b", "\r")


def hostile_act(cli: Cli, folder: Path) -> str:
    """An act on a file whose name plays tricks."""
    given = json.dumps({"path": str(folder / HOSTILE), "content": "x"})
    act: str = cli.json("tools", "call", "files.write", given)["result"]["act"]
    return act


@pytest.mark.parametrize("command", ["log", "show", "undo"])
def test_a_hostile_name_reaches_no_terminal(served: Cli, tmp_path: Path, command: str):
    act = hostile_act(served, tmp_path)
    ran = served.run(command, *([] if command == "log" else [act]))
    assert ran.code == 0, ran
    assert not [raw for raw in RAW if raw in ran.out + ran.err]
    assert "\\x1b[2J" in ran.out.replace("\n", "").replace(" ", "")


def test_a_hostile_name_in_an_error_reaches_no_terminal(served: Cli, tmp_path: Path):
    act = hostile_act(served, tmp_path)
    (tmp_path / HOSTILE).write_text("mine")
    ran = served.run("undo", act)
    assert ran.code == 3
    assert not [raw for raw in RAW if raw in ran.out + ran.err]


def test_a_hostile_argument_reaches_no_terminal(served: Cli):
    ran = served.run("show", HOSTILE)
    assert ran.code == 2
    assert not [raw for raw in RAW if raw in ran.err]


def test_json_is_ascii(served: Cli, tmp_path: Path):
    hostile_act(served, tmp_path)
    ran = served.run("log", "--json", "--limit", "1")
    assert ran.out.isascii()
    assert HOSTILE in ran.json["acts"][0]["summary"]


@pytest.mark.parametrize(
    "command",
    [
        ["log"],
        ["show", "--last"],
        ["modules", "list"],
        ["audit", "--limit", "5"],
        ["tools", "list"],
        ["doctor"],
        ["status"],
    ],
)
def test_every_table_fits_eighty_columns(served: Cli, tmp_path: Path, command: list[str]):
    given = json.dumps({"path": str(tmp_path / ("deep" * 20)), "content": "x"})
    served.json("tools", "call", "files.write", given)
    ran = served.run(*command)
    assert ran.code == 0, ran
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_colours_are_for_terminals_that_want_them(served: Cli, tmp_path: Path):
    hostile_act(served, tmp_path)
    assert "\x1b[" not in served.run("log").out
    coloured = Terminal(served, "log", "--limit", "1", piped=False)
    assert coloured.end().code == 0
    assert "\x1b[32mdone" in coloured.raw
    plain = Terminal(served, "log", "--limit", "1", piped=False, env={"NO_COLOR": "1"})
    assert plain.end().code == 0
    assert "\x1b[3" not in plain.raw
    assert "done" in plain.raw


def test_an_encoding_that_lacks_a_letter_is_no_trouble(served: Cli, tmp_path: Path):
    given = json.dumps({"path": str(tmp_path / "漢.txt"), "content": "x"})
    served.json("tools", "call", "files.write", given)
    ran = served.run("show", "--last", env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0, ran
    assert "\\u6f22" in ran.out


def test_a_reader_that_leaves_early_is_no_trouble(served: Cli, tmp_path: Path):
    hostile_act(served, tmp_path)
    with subprocess.Popen(
        served.command("tools", "list", "--json"),
        env=served.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as client:
        assert client.stdout is not None
        assert client.stderr is not None
        client.stdout.close()
        assert client.stderr.read() == b""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("notes.md", "notes.md"),
        ("ünï 漢字 🙂", "ünï 漢字 🙂"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("a\u202eb\u2066c\u200f", "a\\u202eb\\u2066c\\u200f"),
        ("\udcff", "\\udcff"),
        ("\u2028", "\\u2028"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_visible(text: str, shown: str):
    assert visible(text) == shown


def test_a_resource_is_shown_as_a_path():
    assert resource_name("files:/a%20b/%1B%FF.txt") == "/a b/\\x1b\\udcff.txt"
    assert resource_name("rows:main/skill/7") == "rows:main/skill/7"
