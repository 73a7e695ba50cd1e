"""Acts of the person's, seen and taken back by commands."""

import json
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import SECONDS, Cli

ACT = {
    "id",
    "at",
    "actor",
    "actor_kind",
    "agent",
    "session",
    "turn",
    "tool",
    "input",
    "summary",
    "state",
    "undoable",
    "why",
    "touched",
}
PLAN = {"digest", "steps", "counts", "conflicts"}


@pytest.fixture
def folder(served: Cli, tmp_path: Path) -> Path:
    """A folder that this test alone works in."""
    return tmp_path


def write(cli: Cli, path: Path, content: str) -> str:
    """Write a file through takeback; answers the act's id."""
    given = json.dumps({"path": str(path), "content": content})
    act: str = cli.json("tools", "call", "files.write", given)["result"]["act"]
    return act


def test_log_lists_newest_first_by_pages(served: Cli, folder: Path):
    ids = [write(served, folder / f"{n}.txt", "x") for n in range(3)]
    page = served.json("log", "--limit", "2")
    assert set(page) == {"ok", "acts", "next"}
    assert [act["id"] for act in page["acts"]] == [ids[2], ids[1]]
    assert set(page["acts"][0]) >= ACT
    older = served.json("log", "--limit", "1", "--cursor", page["next"])
    assert older["acts"][0]["id"] == ids[0]


def test_log_filters(served: Cli, folder: Path):
    first = write(served, folder / "a.txt", "x")
    second = write(served, folder / "b.txt", "x")
    served.json("undo", second)
    resource = f"files:{folder}/a.txt"
    assert [act["id"] for act in served.json("log", "--resource", resource)["acts"]] == [first]
    undone = served.json("log", "--state", "undone", "--since", "1h", "--limit", "1")["acts"]
    assert [act["id"] for act in undone] == [second]
    assert served.json("log", "--agent", "nobody")["acts"] == []
    assert served.json("log", "--since", "2999-01-01")["acts"] == []


def test_show_has_the_act_and_its_plan(served: Cli, folder: Path):
    act = write(served, folder / "a.txt", "x")
    shown = served.json("show", act)
    assert {"ok", "act", "plan", "children"} == set(shown)
    assert shown["act"]["id"] == act
    assert set(shown["plan"]) == PLAN
    assert served.json("show", "--last")["act"]["id"] == act


def test_dry_run_changes_nothing_and_undo_does_what_it_said(served: Cli, folder: Path):
    path = folder / "a.txt"
    write(served, path, "one")
    act = write(served, path, "two")
    planned = served.json("undo", act, "--dry-run")
    assert set(planned) == {"ok", "plan"}
    assert path.read_text() == "two"
    done = served.json("undo", act, "--digest", planned["plan"]["digest"])
    assert {"ok", "plan", "results"} <= set(done)
    assert done["plan"] == planned["plan"]
    assert done["results"] == [{"id": act, "state": "undone", "already": False}]
    assert path.read_text() == "one"


def test_undo_twice_says_already(served: Cli, folder: Path):
    act = write(served, folder / "a.txt", "x")
    served.json("undo", act)
    assert served.json("undo", act)["results"] == [{"id": act, "state": "undone", "already": True}]


def test_redo_does_again(served: Cli, folder: Path):
    path = folder / "a.txt"
    act = write(served, path, "x")
    served.json("undo", act)
    assert set(served.json("redo", act, "--dry-run")) == {"ok", "plan"}
    assert not path.exists()
    assert served.json("redo", act)["results"] == [{"id": act, "state": "done", "already": False}]
    assert path.read_text() == "x"


def test_last_is_the_newest_act_and_the_newest_undo(served: Cli, folder: Path):
    older = write(served, folder / "a.txt", "x")
    newer = write(served, folder / "b.txt", "x")
    assert served.json("undo", "--last")["results"][0]["id"] == newer
    assert served.json("undo", "--last")["results"][0]["id"] == older
    assert served.json("redo", "--last")["results"][0]["id"] == older
    assert served.json("redo", "--last")["results"][0]["id"] == newer


def test_a_unique_beginning_names_an_act(served: Cli, folder: Path):
    act = write(served, folder / "a.txt", "x")
    others = [each["id"] for each in served.json("log")["acts"] if each["id"] != act]
    unique = next(act[:n] for n in range(8, 36) if not any(other.startswith(act[:n]) for other in others))
    assert served.json("show", unique)["act"]["id"] == act
    assert served.json("show", act.upper())["act"]["id"] == act


def test_a_shared_beginning_is_refused_and_lists_them(served: Cli, folder: Path):
    acts = [write(served, folder / f"{n}.txt", "x") for n in range(2)]
    ran = served.run("undo", acts[0][:8], "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage.id")
    assert all(act in ran.json["error"]["hint"] for act in acts)
    assert (folder / "0.txt").exists()


@pytest.mark.parametrize("given", ["0190", "not-an-id!", "\u202e0190", "0" * 40, ""])
def test_what_is_no_id_is_a_usage_error(served: Cli, given: str):
    ran = served.run("show", given, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage.id")


@pytest.mark.parametrize("given", ["00000000-0000-7000-8000-000000000000", "0190a0b0", "ffffffffff"])
@pytest.mark.parametrize("command", ["show", "undo", "redo", "pin"])
def test_an_unknown_id_is_not_found(served: Cli, command: str, given: str):
    ran = served.run(command, given, "--json")
    assert (ran.code, ran.json["ok"], ran.json["error"]["kind"]) == (5, False, "not_found")


def test_a_conflict_exits_3_with_the_plan_and_touches_nothing(served: Cli, folder: Path):
    path = folder / "a.txt"
    act = write(served, path, "theirs")
    path.write_text("mine")
    ran = served.run("undo", act, "--json")
    assert ran.code == 3
    assert ran.json["error"]["kind"] == "conflict"
    assert ran.json["plan"]["conflicts"][0]["act"] == act
    assert path.read_text() == "mine"
    told = served.run("undo", act)
    assert (told.code, told.out) == (3, "")
    assert "conflict" in told.err
    assert served.run("undo", act, "--dry-run").code == 0


def test_a_plan_that_changed_is_refused_by_its_digest(served: Cli, folder: Path):
    path = folder / "a.txt"
    write(served, path, "one")
    act = write(served, path, "two")
    digest = served.json("undo", act, "--dry-run")["plan"]["digest"]
    path.write_text("mine")
    ran = served.run("undo", act, "--digest", digest, "--json")
    assert ran.code == 3
    assert path.read_text() == "mine"


def test_dependents_are_named_and_come_along_when_asked(served: Cli, folder: Path):
    path = folder / "a.txt"
    first = write(served, path, "one")
    second = write(served, path, "two")
    ran = served.run("undo", first, "--json")
    assert (ran.code, ran.json["plan"]["steps"][0]["status"]) == (3, "dependents")
    done = served.json("undo", first, "--with-dependents")
    assert [step["act"] for step in done["plan"]["steps"]] == [second, first]
    assert not path.exists()


def test_rewind_takes_all_back_or_skips_what_conflicts(cli: Cli):
    folder = cli.work
    write(cli, folder / "a.txt", "x")
    write(cli, folder / "b.txt", "x")
    (folder / "b.txt").write_text("mine")
    assert set(cli.json("rewind", "--since", "1h", "--dry-run")) == {"ok", "plan"}
    assert cli.run("rewind", "--since", "1h", "--json").code == 3
    assert (folder / "a.txt").exists()
    ran = cli.run("rewind", "--since", "1h", "--skip-conflicts", "--json")
    assert (ran.code, ran.json["ok"]) == (3, True)
    assert {"plan", "results", "skipped"} <= set(ran.json)
    assert [step["summary"] for step in ran.json["skipped"]] == [f"Created {folder}/b.txt"]
    assert not (folder / "a.txt").exists()
    assert (folder / "b.txt").read_text() == "mine"


def test_what_was_left_out_is_named(cli: Cli):
    path = cli.work / "b.txt"
    write(cli, path, "x")
    later = write(cli, path, "y")
    path.write_text("mine")
    ran = cli.run("rewind", "--since", "1h", "--skip-conflicts")
    assert ran.code == 3
    assert "Nothing could be taken back" in ran.out
    assert ran.err.count("b.txt") == 2
    assert later[:13] in ran.err
    path.write_text("y")
    done = cli.run("rewind", "--since", "1h", "--skip-conflicts", "--json")
    assert (done.code, done.json["skipped"]) == (0, [])


@pytest.mark.parametrize("command", [["undo", "--last"], ["redo", "--last"], ["rewind", "--since", "1h"]])
@pytest.mark.parametrize("extra", [[], ["--json"], ["--dry-run"]])
def test_force_without_a_terminal_is_refused(served: Cli, command: list[str], extra: list[str]):
    ran = served.run(*command, "--force", *extra)
    assert ran.code == 4
    if "--json" in extra:
        assert ran.json["error"]["code"] == "force.no_terminal"


def test_pin_and_gc(served: Cli, folder: Path):
    act = write(served, folder / "a.txt", "x")
    served.json("pin", act)
    assert served.json("show", act)["act"]["pinned"] is True
    served.json("pin", act, "--remove")
    assert served.json("show", act)["act"]["pinned"] is False
    assert set(served.json("gc")) == {"ok", "undo", "files", "undoLive", "undoPruned"}


def test_settle_asks_for_a_word_and_an_unknown_act(served: Cli, folder: Path):
    act = write(served, folder / "a.txt", "x")
    assert served.run("settle", act).code == 2
    ran = served.run("settle", act, "--happened", "--json")
    assert ran.json["ok"] is False
    assert ran.code in (1, 2, 3)


def test_tools_call_reads_stdin_and_can_be_a_dry_run(served: Cli, folder: Path):
    given = json.dumps({"path": str(folder / "a.txt"), "content": "ü"})
    dry = served.run("tools", "call", "files.write", "-", "--dry-run", "--json", stdin=given)
    assert (dry.code, set(dry.json)) == (0, {"ok", "result"})
    assert not (folder / "a.txt").exists()
    assert served.run("tools", "call", "files.write", "-", stdin=given).code == 0
    assert (folder / "a.txt").read_text() == "ü"


@pytest.mark.parametrize("given", ["{", "[]", "7", "\x00"[:0] or "nope"])
def test_tools_call_wants_an_object(served: Cli, given: str):
    ran = served.run("tools", "call", "files.write", given, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage.invalid")


@pytest.fixture
def follower(served: Cli) -> Iterator["subprocess.Popen[bytes]"]:
    """`takeback log --follow` in a process of its own."""
    command = served.command("log", "--follow", "--json", "--limit", "1")
    # Unbuffered on our side, so that what is not read yet can be waited for.
    with subprocess.Popen(command, env=served.environ, stdout=subprocess.PIPE, bufsize=0) as follower:
        try:
            yield follower
        finally:
            follower.terminate()


def test_log_follow_prints_acts_as_they_happen(served: Cli, folder: Path, request: pytest.FixtureRequest):
    act = write(served, folder / "a.txt", "x")
    follower = request.getfixturevalue("follower")
    assert _line(follower)["act"]["id"] == act
    later = write(served, folder / "b.txt", "x")
    seen = _line(follower)
    assert (seen["ok"], seen["act"]["id"]) == (True, later)
    served.json("undo", later)
    undone = _line(follower)["act"]
    assert (undone["id"], undone["state"]) == (later, "undone")


def _line(follower: "subprocess.Popen[bytes]") -> Any:
    assert follower.stdout is not None
    assert select.select([follower.stdout], [], [], SECONDS)[0], "nothing was told"
    return json.loads(follower.stdout.readline())
