"""A refused undo says what stands against it, who did that and when, and what the person can do."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import Cli
from tests.cli.terminal import Terminal


@pytest.fixture
def work(served: Cli) -> Iterator[Path]:
    """The empty folder that commands are run in."""
    yield served.work
    for path in served.work.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def write(cli: Cli, name: str, content: str) -> str:
    """Write a file through takeback; answers the act's id."""
    given = json.dumps({"path": str(cli.work / name), "content": content})
    act: str = cli.json("tools", "call", "files.write", given)["result"]["act"]
    return act


def in_order(text: str, *parts: str) -> bool:
    """Whether a text has these parts one after another."""
    at = [text.find(part) for part in parts]
    return -1 not in at and at == sorted(at)


def options(text: str) -> list[str]:
    """The options that are offered, which stand indented at the end."""
    return [line.split()[0] for line in text.splitlines() if line.startswith("    --")]


def test_what_nobody_logged_is_said_with_its_time(served: Cli, work: Path):
    act = write(served, "a.txt", "theirs")
    (work / "a.txt").write_text("mine")
    os.utime(work / "a.txt", (1_700_000_000, 1_700_000_000))
    ran = served.run("undo", act)
    assert ran.code == 3
    assert in_order(
        ran.err,
        "Error: ",
        "conflict  Created a.txt",
        "a.txt: it was changed since",
        "not by an act in the log; last written",
        "Nothing was changed",
        "--force",
    )
    assert options(ran.err) == ["--lay-out", "--force"]
    assert (work / "a.txt").read_text() == "mine"


def test_a_later_act_is_said_with_its_actor_its_time_and_its_id(served: Cli, work: Path):
    first, second = write(served, "a.txt", "one"), write(served, "a.txt", "two")
    ran = served.run("undo", first)
    assert in_order(ran.err, "dependents  Created a.txt", "a.txt was changed since by you, ", second[:13])
    assert options(ran.err) == ["--with-dependents", "--force"]
    (work / "a.txt").write_text("mine")
    again = served.run("undo", first, "--with-dependents")
    assert again.code == 3
    assert options(again.err) == ["--lay-out", "--force"]


def test_a_rewind_offers_to_leave_out_what_conflicts_where_something_is_left(served: Cli, work: Path):
    write(served, "a.txt", "x")
    (work / "a.txt").write_text("mine")
    alone = served.run("rewind", "--path", str(work))
    assert options(alone.err) == ["--force"]
    write(served, "b.txt", "x")
    ran = served.run("rewind", "--path", str(work))
    assert in_order(ran.err, "a.txt: it was changed since", "Nothing stands against the other one.")
    assert options(ran.err) == ["--skip-conflicts", "--force"]
    assert "Created b.txt" not in ran.err, "only what stands in the way is shown"


def test_a_preview_says_how_it_could_be_done(served: Cli, work: Path):
    act = write(served, "a.txt", "x")
    assert served.run("undo", act, "--dry-run").err == ""
    (work / "a.txt").write_text("mine")
    ran = served.run("undo", act, "--dry-run")
    assert (ran.code, options(ran.err)) == (0, ["--lay-out", "--force"])
    assert "a.txt: it was changed since" in ran.out


def test_redo_offers_what_it_has(served: Cli, work: Path):
    act = write(served, "a.txt", "theirs")
    served.json("undo", act)
    (work / "a.txt").write_text("mine")
    ran = served.run("redo", act)
    assert (ran.code, options(ran.err)) == (3, ["--force"])


def test_force_is_not_offered_nor_asked_about_where_it_does_not_help(served: Cli, work: Path):
    (work / "folder").mkdir()
    write(served, "folder/a.txt", "one")
    act = write(served, "folder/a.txt", "two")
    shutil.rmtree(work / "folder")
    ran = served.run("undo", act)
    assert ran.code == 3
    assert options(ran.err) == []
    assert "The folder folder is gone; make it again" in ran.err
    forced = Terminal(served, "undo", act, "--force").end()
    assert forced.code == 3
    assert "[y/N]" not in forced.err
    assert not (work / "folder").exists()


def test_what_a_newer_step_wrote_is_not_taken_for_the_change(served: Cli, work: Path):
    write(served, "a.txt", "one")
    (work / "a.txt").write_text("mine")
    write(served, "a.txt", "three")
    ran = served.run("rewind", "--path", "a.txt")
    assert ran.code == 3
    assert "not by an act in the log" in ran.err
    assert "last written" not in ran.err


def test_a_conflict_on_a_folder_is_one(served: Cli, work: Path):
    served.run("run", "--quiet", "--", "sh", "-c", "mkdir new; touch new/a beside")
    (work / "new" / "b").touch()
    ran = served.run("undo", "--last")
    assert ran.code == 3
    assert ran.err.count("\n    new") == 1
    assert "nothing stands against the other one" in ran.err


def test_json_has_the_plan_and_the_error_as_ever(served: Cli, work: Path):
    act = write(served, "a.txt", "theirs")
    (work / "a.txt").write_text("mine")
    ran = served.run("undo", act, "--json")
    assert (ran.json["error"]["code"], ran.err) == ("undo.conflict", "")
    assert set(ran.json["plan"]["conflicts"][0]) >= {"resource", "reason", "by", "at", "base", "ours"}


def test_a_conflict_is_laid_out_beside_the_file_and_cleared_away_again(served: Cli, work: Path):
    (work / "a.txt").write_text("before\n")
    act = write(served, "a.txt", "theirs\n")
    (work / "a.txt").write_text("mine\n")
    ran = served.run("undo", act, "--lay-out")
    assert ran.code == 0
    assert ran.out.split() == [f"a.txt.takeback-{side}" for side in ("base", "ours", "theirs")]
    beside = {path.name.rpartition("-")[2]: path.read_text() for path in work.glob("a.txt.*")}
    assert beside == {"base": "theirs\n", "ours": "mine\n", "theirs": "before\n"}
    remove = ran.err.rpartition("takeback undo ")[2].split()[0]
    assert served.run("undo", remove).code == 0
    assert [path.name for path in work.iterdir()] == ["a.txt"]


def test_nothing_is_laid_out_where_nothing_stands_in_the_way(served: Cli, work: Path):
    act = write(served, "a.txt", "theirs\n")
    assert served.json("undo", act, "--lay-out")["laid"] == []
    assert "nothing to lay out" in served.run("undo", act, "--lay-out").err
