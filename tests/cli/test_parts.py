"""A part of an act, from the command line: by path, or all but what conflicts; what stays is said."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Cli, Ran


@pytest.fixture
def work(served: Cli) -> Iterator[Path]:
    """The empty folder that commands are run in."""
    yield served.work
    for path in served.work.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def act(served: Cli, work: Path) -> str:
    """A command's act on three files, one of which the person has changed since."""
    for name in "abc":
        (work / name).write_bytes(b"\0" + name.encode())
    act = command(served, "for f in a b c; do printf '\\001' > $f; done")
    (work / "b").write_bytes(b"\0mine")
    return act


def command(cli: Cli, script: str) -> str:
    """Run a command; answers its act."""
    assert cli.run("run", "--quiet", "--session", "s", "--", "sh", "-c", script).code == 0
    return str(cli.json("log", "--limit", "1")["acts"][0]["id"])


def read(work: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in work.iterdir() if path.is_file()}


def options(ran: Ran) -> list[str]:
    return [line.split()[0] for line in ran.err.splitlines() if line.startswith("    --")]


def test_all_but_what_conflicts(served: Cli, work: Path, act: str):
    shown = served.run("undo", act, "--skip-conflicts", "--dry-run")
    assert shown.code == 0
    assert "stays: b: it was changed since" in shown.out
    assert "not by an act in the log; last written" in shown.out
    assert read(work)["a"] == b"\1"
    ran = served.run("undo", act, "--skip-conflicts")
    assert ran.code == 3
    assert "1 in part" in ran.out
    assert "1 left out:" in ran.err
    assert "b (it was changed since" in ran.err
    assert read(work) == {"a": b"\0a", "b": b"\0mine", "c": b"\0c"}
    again = served.run("undo", act, "--skip-conflicts", "--json")
    assert (again.code, again.json["results"], len(again.json["skipped"])) == (3, [], 1)


def test_json_says_what_stays(served: Cli, work: Path, act: str):
    ran = served.run("undo", act, "--skip-conflicts", "--json")
    assert (ran.code, ran.json["skipped"]) == (3, [])
    assert ran.json["results"] == [{"id": act, "state": "done", "already": False, "part": True}]
    (step,) = ran.json["plan"]["steps"]
    assert [(each["resource"], each["why"]) for each in step["stays"]] == [(f"files:{work}/b", "conflict")]
    (work / "b").write_bytes(b"\1")
    assert served.json("undo", act)["results"] == [{"id": act, "state": "undone", "already": False}]
    assert read(work) == {name: b"\0" + name.encode() for name in "abc"}


def test_only_what_is_named(served: Cli, work: Path, act: str):
    shown = served.run("undo", act, "--path", "a", "--dry-run")
    assert "stays, for it was not asked for: b, c" in shown.out
    ran = served.run("undo", act, "--path", "a")
    assert (ran.code, ran.err) == (0, "")
    assert read(work) == {"a": b"\0a", "b": b"\0mine", "c": b"\1"}
    redone = served.run("redo", "--last")
    assert "1 in part" in redone.out
    assert read(work)["a"] == b"\1"
    served.json("undo", act, "--path", "a", "--path", str(work / "c"))
    assert read(work) == {"a": b"\0a", "b": b"\0mine", "c": b"\0c"}
    assert served.run("undo", act, "--path", "b").code == 3


def test_what_the_act_did_not_touch(served: Cli, work: Path, act: str):
    ran = served.run("undo", act, "--path", "d", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (5, "undo.no_part")


def test_the_options_are_offered_where_they_help(served: Cli, work: Path, act: str):
    ran = served.run("undo", act)
    assert ran.code == 3
    assert options(ran) == ["--skip-conflicts", "--path", "--lay-out", "--force"]
    (work / "a").write_bytes(b"\0mine")
    (work / "c").write_bytes(b"\0mine")
    assert options(served.run("undo", act)) == ["--lay-out", "--force"]


def test_skipping_and_force_exclude_each_other(served: Cli, act: str):
    assert served.run("undo", act, "--skip-conflicts", "--force").code == 2


def test_a_rewind_leaves_out_one_path_and_not_its_act(served: Cli, work: Path, act: str):
    shown = served.run("rewind", "--path", "a", "--skip-conflicts", "--dry-run")
    assert "stays: b: it was changed since" in shown.out
    ran = served.run("rewind", "--path", "a", "--skip-conflicts")
    assert ran.code == 3
    assert "b (it was changed since" in ran.err
    assert read(work) == {"a": b"\0a", "b": b"\0mine", "c": b"\0c"}


def test_show_says_what_was_taken_back_by_itself(served: Cli, work: Path, act: str):
    served.json("undo", act, "--path", "a")
    shown = served.run("show", act)
    assert "Taken back" in shown.out
    assert list(served.json("show", act)["act"]["taken_back"]) == [f"files:{work}/a"]


def items(ran: Ran) -> dict[str, Any]:
    return {item.pop("path"): (item["action"], item.get("reason")) for item in ran.json["items"]}


def test_the_journal_leaves_out_one_path_alone(served: Cli, work: Path, act: str):
    expected = {"a": ("restore", None), "b": ("skip", "conflict"), "c": ("restore", None)}
    dry = served.run("journal", "undo", "--session", "s", "--dry-run")
    assert (dry.code, dry.json["restored"], dry.json["conflicts"]) == (3, 2, 1)
    assert items(dry) == expected
    assert read(work)["a"] == b"\1"
    ran = served.run("journal", "undo", "--session", "s")
    assert (ran.code, ran.json["restored"], ran.json["conflicts"]) == (3, 2, 1)
    assert items(ran) == expected
    assert read(work) == {"a": b"\0a", "b": b"\0mine", "c": b"\0c"}
    again = served.run("journal", "undo", "--session", "s")
    assert items(again) == {"a": ("skip", "unchanged"), "b": ("skip", "conflict"), "c": ("skip", "unchanged")}


def test_the_journal_goes_back_to_the_first_pre_image_over_several_acts(served: Cli, work: Path, act: str):
    command(served, "printf '\\002' > a; printf '\\002' > c; mkdir new; touch new/x")
    (work / "new" / "mine").touch()
    ran = served.run("journal", "undo", "--session", "s")
    found = items(ran)
    assert found["a"] == found["c"] == ("restore", None)
    assert found["b"] == found["new"] == ("skip", "conflict")
    assert read(work) == {"a": b"\0a", "b": b"\0mine", "c": b"\0c"}
    assert sorted(path.name for path in (work / "new").iterdir()) == ["mine", "x"]


def test_what_may_be_somebody_elses_is_taken_back_by_its_path(served: Cli, work: Path):
    (work / "in").mkdir()
    (work / "in" / "either").write_text("old")
    inner = "cd in; takeback run --quiet --root . -- sh -c 'echo new > either'; cd .."
    script = inner.replace("takeback", " ".join(served.command()).replace("-W error", ""), 1)
    act = command(served, f"{script}; echo mine > mine")
    shown = served.run("undo", act, "--dry-run")
    assert "stays unless --path names it: in/either" in shown.out
    both = served.run("undo", act, "--path", "mine", "--path", "in/either", "--json")
    assert (both.code, both.json["error"]["code"]) == (2, "usage.path")
    ran = served.run("undo", act, "--path", "in/either")
    assert ran.code == 0
    assert "somebody else's doing" in ran.err
    assert (work / "in" / "either").read_text() == "old"
    assert (work / "mine").read_text() == "mine\n"


def test_conflicts_of_a_part_can_be_laid_out(served: Cli, work: Path, act: str):
    ran = served.run("undo", act, "--path", "b", "--lay-out")
    assert ran.code == 0
    assert sorted(ran.out.split()) == ["b.takeback-base", "b.takeback-ours", "b.takeback-theirs"]
    assert json.loads(served.run("undo", act, "--path", "a", "--lay-out", "--json").out)["laid"] == []
