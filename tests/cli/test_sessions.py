"""Conversations on the command line: seen, previewed, edited."""

from collections.abc import Iterator

import anyio
import pytest

from takeback import Kernel, Scope
from takeback_acts.files.module import FilesModule
from takeback_core.sessions.module import SessionsModule
from takeback_core.undo.module import UndoModule
from tests.cli.running import Cli, over_a_home
from tests.cli.terminal import answered
from tests.cli.test_completion import complete

SESSION = "chat 1"


@pytest.fixture
def talked() -> Iterator[Cli]:
    """`takeback` over a home with a conversation of three messages that wrote files, served by a daemon."""
    for cli in over_a_home():
        anyio.run(_talk, cli)
        assert cli.serve().ready["ok"]
        yield cli


async def _talk(cli: Cli) -> None:
    async with Kernel(cli.home, settings={}, modules=[UndoModule, SessionsModule, FilesModule]) as kernel:

        def juno(turn: str | None = None, session: str = SESSION):
            scope = Scope(roots=(str(cli.work),))
            return kernel.enter("mcp:agent:juno", session=session, turn=turn, scope=scope)

        await juno().sessions.open(session=SESSION, title="Notes")
        for turn, name in (("m1", "a"), ("m2", "b"), ("m3", "c")):
            app = juno(turn)
            await app.sessions.say(session=SESSION, turn=turn, text=f"write {name}\n\x1b[31mplease")
            await app.sessions.begin(session=SESSION, turn=turn)
            await app.files.write(path=str(cli.work / name), content=turn)
            await app.sessions.end(session=SESSION, turn=turn)
        await juno("p1", "shell").files.write(path=str(cli.work / "z"), content="z")


def names(cli: Cli) -> list[str]:
    return sorted(path.name for path in cli.work.iterdir())


def test_sessions_are_listed_and_shown(talked: Cli):
    listed = talked.json("sessions")["sessions"]
    assert [(one["session"], one["owner"], one["acts"]) for one in listed] == [
        ("shell", None, 1),
        (SESSION, "sessions", 3),
    ]
    assert talked.json("sessions", "list", "--agent", "max")["sessions"] == []
    shown = talked.json("sessions", "show", SESSION)
    assert [(one["turn"], one["state"], one["acts"]) for one in shown["turns"]] == [
        (turn, "done", 1) for turn in ("m1", "m2", "m3")
    ]
    told = talked.run("sessions", "show", SESSION, "--agent", "juno")
    assert (told.code, told.err) == (0, "")
    assert "write b please" not in told.out, "what would steer the terminal is shown as it is written"
    assert "write b" in told.out
    assert "\x1b" not in told.out
    assert SESSION in talked.run("sessions").out


def test_an_unknown_one_is_not_found(talked: Cli):
    for args in (
        ["show", "chat 9"],
        ["edit", SESSION, "m9", "--text", "x"],
        ["edit", SESSION, "m1", "--agent", "max"],
    ):
        ran = talked.run("sessions", *args, "--json", stdin="x")
        assert (ran.code, ran.json["error"]["kind"]) == (5, "not_found")


def test_a_dry_run_tells_what_the_roll_back_then_does(talked: Cli):
    told = talked.json("sessions", "edit", SESSION, "m2", "--roll-back", "--dry-run", "--rows")
    assert [group["phrase"] for group in told["groups"]] == ["2 files will be deleted"]
    assert (told["total"], told["later"], len(told["rows"])) == (2, 1, 2)
    assert names(talked) == ["a", "b", "c", "z"]
    spoken = talked.run("sessions", "edit", SESSION, "m2", "--dry-run", "--rows").out
    assert "2 files will be deleted" in spoken
    assert f"delete {talked.work}/c" in spoken
    assert "1 later message vanishes" in spoken
    given = ["--text", "write d", "--roll-back", "--digest"]
    refused = talked.run("sessions", "edit", SESSION, "m1", *given, told["digest"], "--json")
    assert (refused.code, refused.json["error"]["code"]) == (3, "undo.plan_changed")
    edited = talked.json("sessions", "edit", SESSION, "m2", *given, told["digest"])
    assert (edited["turn"], edited["rolled_back"], edited["left"]) == ("m2", 2, [])
    assert names(talked) == ["a", "z"]
    shown = talked.json("sessions", "show", SESSION)["turns"]
    assert [(one["turn"], one["state"]) for one in shown] == [("m1", "done"), ("m2", "due")]
    assert shown[1]["text"] == "write d"


def test_the_text_comes_from_stdin_as_it_is(talked: Cli):
    ran = talked.run("sessions", "edit", SESSION, "m3", stdin="write\nd\n")
    assert (ran.code, "can't be rolled back" in ran.err) == (0, True)
    assert names(talked) == ["a", "b", "c", "z"]
    given = '{"session": "chat 1"}'
    told = talked.json("tools", "call", "sessions.messages", given)["result"]["messages"]
    assert told[-1]["text"] == "write\nd\n"
    empty = talked.run("sessions", "edit", SESSION, "m3", "--json")
    assert (empty.code, empty.json["error"]["code"]) == (2, "sessions.text")


def test_what_somebody_changed_is_a_conflict_and_can_be_left(talked: Cli):
    (talked.work / "b").write_text("mine")
    args = ("sessions", "edit", SESSION, "m2", "--text", "write d", "--roll-back")
    refused = talked.run(*args, "--json")
    assert (refused.code, refused.json["error"]["code"]) == (3, "undo.conflict")
    assert refused.json["plan"]["conflicts"]
    assert names(talked) == ["a", "b", "c", "z"]
    left = talked.run(*args, "--skip-conflicts")
    assert left.code == 3
    assert f"Left as it is: {talked.work}/b" in left.err
    assert names(talked) == ["a", "b", "z"]
    assert (talked.work / "b").read_text() == "mine"


def test_a_conversation_that_nobody_keeps_is_refused_with_what_can_be_done(talked: Cli):
    ran = talked.run("sessions", "edit", "shell", "p1", "--text", "x", "--roll-back")
    assert ran.code == 4
    assert "takeback rewind --session shell --turn p1" in ran.err
    assert talked.run("rewind", "--session", "shell", "--turn", "p1").code == 0
    assert names(talked) == ["a", "b", "c"]


def test_on_a_terminal_it_shows_what_will_happen_and_asks(talked: Cli):
    args = ("sessions", "edit", SESSION, "m2", "--text", "write d", "--roll-back")
    question, no = answered(talked, "n", *args)
    assert "Roll this back" in question
    assert "2 files will be deleted" in no.err
    assert no.code == 4
    assert names(talked) == ["a", "b", "c", "z"]
    _, yes = answered(talked, "y", *args)
    assert yes.code == 0
    assert names(talked) == ["a", "z"]


def test_a_turn_whose_program_died_is_ended(talked: Cli):
    ended = talked.json("sessions", "end", SESSION, "m3")
    assert (ended["message"]["turn"], ended["message"]["state"]) == ("m3", "cut")


def test_options_of_a_roll_back_want_one(talked: Cli):
    for option in (["--skip-conflicts"], ["--digest", "0" * 64]):
        assert talked.run("sessions", "edit", SESSION, "m2", "--text", "x", *option).code == 2


def test_sessions_and_turns_are_completed(talked: Cli):
    assert complete(talked, "sessions", "show", "sh") == ["shell"]
    assert complete(talked, "sessions", "edit", "shell", "p") == ["p1"]
