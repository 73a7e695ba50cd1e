"""--force: only a person on a terminal, only after a yes."""

import json
from pathlib import Path

import pytest

from tests.cli.running import Cli
from tests.cli.terminal import Terminal


def conflicting(cli: Cli, folder: Path) -> tuple[Path, str]:
    """A file that was written through takeback and then by hand."""
    path = folder / "a.txt"
    given = json.dumps({"path": str(path), "content": "theirs"})
    act: str = cli.json("tools", "call", "files.write", given)["result"]["act"]
    path.write_text("mine")
    return path, act


@pytest.mark.parametrize("answer", ["n", "", "no"])
def test_anything_but_yes_changes_nothing(served: Cli, tmp_path: Path, answer: str):
    path, act = conflicting(served, tmp_path)
    terminal = Terminal(served, "undo", act, "--force", "--json")
    terminal.wait_for("[y/N]")
    assert str(path) in terminal.shown.replace("\r\n", ""), "what would be overwritten is shown"
    terminal.type(answer)
    ran = terminal.end()
    assert (ran.code, json.loads(ran.out)["error"]["code"]) == (4, "force.declined")
    assert path.read_text() == "mine"


def test_yes_overwrites_and_can_itself_be_undone(served: Cli, tmp_path: Path):
    path, act = conflicting(served, tmp_path)
    terminal = Terminal(served, "undo", act, "--force", "--json")
    terminal.wait_for("[y/N]")
    terminal.type("y")
    ran = terminal.end()
    assert ran.code == 0, ran
    assert json.loads(ran.out)["results"] == [{"id": act, "state": "undone", "already": False}]
    assert not path.exists()
    served.json("redo", "--last")
    assert path.read_text() == "mine", "what force overwrote had been captured"


def test_what_changes_after_the_question_is_not_overwritten(served: Cli, tmp_path: Path):
    path, act = conflicting(served, tmp_path)
    terminal = Terminal(served, "undo", act, "--force", "--json")
    terminal.wait_for("[y/N]")
    path.write_text("mine, and newer")
    terminal.type("y")
    ran = terminal.end()
    assert ran.code == 3, ran
    assert path.read_text() == "mine, and newer"


def test_a_rewind_can_be_forced_too(served: Cli, tmp_path: Path):
    path, _ = conflicting(served, tmp_path)
    terminal = Terminal(served, "rewind", "--since", "1h", "--force")
    terminal.wait_for("[y/N]")
    terminal.type("y")
    assert terminal.end().code == 0
    assert not path.exists()


def test_ctrl_c_at_the_question_changes_nothing(served: Cli, tmp_path: Path):
    path, act = conflicting(served, tmp_path)
    terminal = Terminal(served, "undo", act, "--force")
    terminal.wait_for("[y/N]")
    terminal.press_ctrl_c()
    assert terminal.end().code == 130
    assert path.read_text() == "mine"


def test_a_dry_run_asks_nothing(served: Cli, tmp_path: Path):
    path, act = conflicting(served, tmp_path)
    ran = Terminal(served, "undo", act, "--force", "--dry-run", "--json").end()
    assert (ran.code, set(json.loads(ran.out))) == (0, {"ok", "plan"})
    assert path.read_text() == "mine"
