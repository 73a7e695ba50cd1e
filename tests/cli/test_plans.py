"""Plans as people see them: each folder once, with what it holds."""

from typing import Any

import pytest

from takeback_doors.cli.captured import names_not_captured, not_captured
from takeback_doors.cli.folders import as_one
from takeback_doors.cli.plans import show_plan
from tests.cli.running import Cli


def plan(*effects: dict[str, Any]) -> dict[str, Any]:
    """A plan of one step with these effects."""
    step = {"act": "0" * 36, "summary": "Deleted e", "status": "clean", "reason": "", "effects": [*effects]}
    return {"digest": "", "steps": [step], "counts": {"clean": 1}, "conflicts": []}


def effect(resource: str, action: str = "restore", **more: Any) -> dict[str, Any]:
    """What happens to one resource."""
    return {"resource": resource, "action": action, "reason": "", **more}


def test_a_folder_is_one_line_with_what_it_holds(capsys: pytest.CaptureFixture[str]):
    show_plan(plan(effect("files:/e"), effect("files:/e/", holds=12), effect("files:/f", "delete")))
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[1:]] == [
        "restore /e/ and 12 entries in it",
        "delete /f",
    ]


@pytest.mark.parametrize(
    ("holds", "shown"),
    [(None, "restore /e/"), (0, "restore /e/"), (1, "restore /e/ and 1 entry in it")],
)
def test_what_a_folder_holds_is_said_where_it_is_known(
    capsys: pytest.CaptureFixture[str], holds: int | None, shown: str
):
    show_plan(plan(effect("files:/e"), effect("files:/e/", holds=holds)))
    assert capsys.readouterr().out.splitlines()[1].strip() == shown


def test_an_entry_of_which_something_else_is_said_stays():
    found = [effect("files:/e", "skip"), effect("files:/e/"), effect("files:/e/a")]
    assert as_one(found, "action") == found
    assert as_one(found) == found[1:]


def test_a_folder_is_shown_once_everywhere(cli: Cli):
    (cli.work / "e" / "sub").mkdir(parents=True)
    (cli.work / "e" / "sub" / "a").write_text("x")
    cli.run("run", "--quiet", "--", "rm", "-r", "e")
    for words in (["show", "--last"], ["undo", "--last", "--dry-run"], ["undo", "--last"]):
        lines = [line.split() for line in cli.run(*words).out.splitlines()]
        restored = [line[1] for line in lines if line[:1] == ["restore"]]
        assert restored == ["e/"], words
        assert len([line for line in lines if line[:1] == ["Touched"]]) == (words[0] == "show")
    assert (cli.work / "e" / "sub" / "a").read_text() == "x"


def test_an_undo_says_what_of_a_command_it_leaves(cli: Cli):
    cli.run("run", "--quiet", "--", "sh", "-c", "touch a; mkfifo pipe")
    shown = cli.run("undo", "--last", "--dry-run").out
    assert "not captured, so it stays: pipe (it is a pipe" in shown
    assert "not captured: " in cli.run("show", "--last").out
    assert cli.run("undo", "--last").out.count("pipe") == shown.count("pipe")
    assert "not captured" not in cli.run("redo", "--last").out


def test_notes_are_counted_behind_the_first_few():
    notes = [*(f"not captured: /{n} (no reason)" for n in range(5)), "watch.lost: x", "not captured: 40 more"]
    assert not_captured(notes) == [*(f"/{n} (no reason)" for n in range(3)), "42 more"]
    assert names_not_captured(notes) == "/0, /1, /2 and 42 more"
    assert not_captured(["not captured: the folder has moved"]) == ["the folder has moved"]
    assert (not_captured(["watch.lost: x"]), names_not_captured([])) == ([], "")
