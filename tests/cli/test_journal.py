"""`takeback journal undo`: each path as a session found it, in JSON, with what conflicts left out."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from takeback.context import Context, Scope
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from tests.cli.running import Cli, Ran
from tests.cli.terminal import Terminal

Enter = Callable[[str, str], Context]


def act(cli: Cli, story: Callable[[Enter], Awaitable[None]]) -> None:
    """Lets agents act in the folder, each in a session, before any daemon runs."""

    async def tell() -> None:
        async with Kernel(cli.home, settings={}, modules=[UndoModule, FilesModule]) as kernel:
            scope = Scope(roots=(str(cli.work.resolve()),))
            await story(
                lambda agent, session: kernel.enter(f"hook:agent:{agent}", session=session, scope=scope)
            )

    anyio.run(tell)


def undo(cli: Cli, *args: str) -> Ran:
    return cli.run("journal", "undo", *args)


def sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def by_path(ran: Ran) -> dict[str, Any]:
    return {item.pop("path"): item for item in ran.json["items"]}


@pytest.fixture
def told(cli: Cli) -> Cli:
    """A session that changed, created, deleted and left things, with a later session on two of the files."""
    for name in ("changed", "twice", "deleted", "others", "same"):
        (cli.work / name).write_text(f"{name}\n")
    (cli.work / "lines").write_text("1\n2\n3\n4\n5\n6\n")

    async def story(enter: Enter) -> None:
        mine, other = enter("claude", "3f2a"), enter("codex", "77")
        await mine.call("files.write", path="changed", content="new\n")
        await mine.call("files.write", path="twice", content="once\n")
        await mine.call("files.write", path="twice", content="and again\n")
        await mine.call("files.write", path="created", content="c\n")
        await mine.call("files.delete", path="deleted")
        await mine.call("files.write", path="others", content="mine\n")
        await other.call("files.write", path="others", content="theirs\n")
        await mine.call("files.write", path="same", content="else\n")
        await mine.call("files.write", path="lines", content="one\n2\n3\n4\n5\n6\n")

    act(cli, story)
    (cli.work / "same").write_text("same\n")
    (cli.work / "lines").write_text("one\n2\n3\n4\n5\nsix\n")
    return cli


EXPECTED = {
    "changed": {"action": "restore", "pre": sha("changed\n")},
    "twice": {"action": "restore", "pre": sha("twice\n")},
    "created": {"action": "delete", "pre": "absent"},
    "deleted": {"action": "restore", "pre": sha("deleted\n")},
    "others": {"action": "skip", "pre": sha("others\n"), "reason": "conflict"},
    "same": {"action": "skip", "pre": sha("same\n"), "reason": "unchanged"},
    "lines": {"action": "merge", "pre": sha("1\n2\n3\n4\n5\n6\n")},
}


def test_each_path_gets_the_first_pre_image_and_conflicts_are_left(told: Cli):
    ran = undo(told, "--session", "claude:3f2a", "--dry-run")
    assert ran.code == 3
    root = str(told.work.resolve())
    head = {"ok": True, "root": root, "agentId": "claude:3f2a", "restored": 5, "conflicts": 1}
    assert {key: value for key, value in ran.json.items() if key != "items"} == {**head, "dryRun": True}
    assert by_path(ran) == EXPECTED
    assert (told.work / "changed").read_text() == "new\n"

    done = undo(told, "--session", "3f2a")
    assert (done.code, done.err) == (3, "")
    assert {key: value for key, value in done.json.items() if key != "items"} == {**head, "dryRun": False}
    assert by_path(done) == EXPECTED
    found = {path.name: path.read_text() for path in told.work.iterdir()}
    assert found == {
        "changed": "changed\n",
        "twice": "twice\n",
        "deleted": "deleted\n",
        "others": "theirs\n",
        "same": "same\n",
        "lines": "1\n2\n3\n4\n5\nsix\n",
    }


def test_force_asks_and_restores_what_conflicts_too(told: Cli):
    refused = undo(told, "--session", "3f2a", "--force")
    assert (refused.code, refused.json["error"]["code"]) == (4, "force.no_terminal")
    terminal = Terminal(told, "journal", "undo", "--session", "3f2a", "--force")
    terminal.wait_for("Overwrite")
    terminal.type("y")
    ran = terminal.end()
    assert (ran.code, ran.json["conflicts"]) == (0, 0)
    assert (told.work / "others").read_text() == "others\n"


def test_a_window_begins_at_the_time_given(told: Cli):
    acts = told.json("log", "--session", "3f2a")["acts"]
    second = next(one for one in acts if one["touched"][0]["resource"].endswith("/twice"))
    ran = undo(told, "--session", "3f2a", "--since", second["at"], "--dry-run")
    assert by_path(ran)["twice"]["pre"] == sha("once\n")
    assert "changed" not in by_path(ran)


def test_only_what_lies_in_the_root(told: Cli):
    (told.work / "elsewhere").mkdir()
    ran = undo(told, "--session", "3f2a", "--root", str(told.work / "elsewhere"))
    assert (ran.code, ran.json["items"]) == (0, [])
    assert ran.json["root"] == str((told.work / "elsewhere").resolve())


@pytest.mark.parametrize("named", ["nobody", "claude:nothing", "codex:3f2a", ":", "claude:"])
def test_an_unknown_session_is_not_found(told: Cli, named: str):
    ran = undo(told, "--session", named)
    assert (ran.code, ran.json["ok"], ran.json["error"]["code"]) == (5, False, "ERR_NOT_FOUND")


@pytest.mark.parametrize("since", ["yesterday", "2h", "2026-13-01"])
def test_a_malformed_time_is_an_invalid_plan(told: Cli, since: str):
    ran = undo(told, "--session", "3f2a", "--since", since)
    assert (ran.code, ran.json["error"]["code"]) == (2, "ERR_INVALID_PLAN")
    assert (told.work / "changed").read_text() == "new\n"


def test_the_command_line_itself_is_answered_as_json(cli: Cli):
    ran = undo(cli)
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage.invalid")


def test_two_agents_with_one_session_id_are_told_apart(cli: Cli):
    async def story(enter: Enter) -> None:
        await enter("claude", "s").call("files.write", path="a", content="a")
        await enter("codex", "s").call("files.write", path="b", content="b")

    act(cli, story)
    ran = undo(cli, "--session", "s")
    assert (ran.code, ran.json["error"]["code"]) == (2, "ERR_INVALID_PLAN")
    assert by_path(undo(cli, "--session", "codex:s")) == {"b": {"action": "delete", "pre": "absent"}}
    assert [path.name for path in cli.work.iterdir()] == ["a"]


def test_what_a_command_of_the_session_changed_comes_back_as_well(cli: Cli):
    (cli.work / "d").mkdir()
    (cli.work / "d" / "in").write_text("in")
    cli.run("run", "--session", "mine", "--", "sh", "-c", "rm -r d; echo 1 > new")
    ran = undo(cli, "--session", "person:mine")
    assert by_path(ran) == {
        "d": {"action": "restore", "pre": "dir"},
        "new": {"action": "delete", "pre": "absent"},
    }
    assert (cli.work / "d" / "in").read_text() == "in"


def test_a_folder_whose_mode_changed_is_one_item_with_all_that_became_of_it(cli: Cli):
    (cli.work / "d").mkdir(mode=0o755)
    (cli.work / "d" / "in").write_text("in")
    cli.run("run", "--session", "mine", "--", "chmod", "-R", "700", "d")
    cli.run("run", "--session", "mine", "--", "sh", "-c", "chmod 711 .; rm -r d")
    cli.work.chmod(0o700)
    ran = undo(cli, "--session", "person:mine")
    assert ran.code == 3
    assert by_path(ran) == {
        ".": {"action": "skip", "pre": "dir", "reason": "conflict"},
        "d": {"action": "restore", "pre": "dir"},
        "d/in": {"action": "restore", "pre": sha("in")},
    }
    assert (ran.json["restored"], ran.json["conflicts"]) == (2, 1)
    assert ((cli.work / "d").stat().st_mode & 0o777, (cli.work / "d" / "in").read_text()) == (0o755, "in")


def test_a_pre_image_that_is_gone_is_said_to_be(cli: Cli):
    (cli.work / "large").write_bytes(b"x" * 200_000)

    async def story(enter: Enter) -> None:
        await enter("claude", "s").call("files.delete", path="large")

    act(cli, story)
    for path in (Path(cli.home.data) / "packs" / "large").rglob("*"):
        if path.is_file():
            path.unlink()
    (item,) = undo(cli, "--session", "s").json["items"]
    assert (item["action"], item["reason"]) == ("skip", "missing-blob")
