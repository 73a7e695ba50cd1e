"""Editing a message: what it does to the conversation, to what was done since, and to who derived from it."""

from typing import ClassVar

import anyio
import pytest

from takeback import ConflictError, Manifest, Module, NotFoundError, RefusedError, TakebackError, UsageError
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback_core.sessions.module import SessionsModule
from tests.sessions.talk import SESSION, Talk
from tests.undo.house import house

pytestmark = pytest.mark.anyio


class DraftsModule(Module):
    """Keeps a draft for a session, as an agent that is halfway through something does."""

    manifest: ClassVar[Manifest] = Manifest(1, "drafts", "Drafts.")
    migrations = ("CREATE TABLE drafts_draft (session TEXT PRIMARY KEY);",)
    fails: ClassVar[bool] = False
    heard: ClassVar[list[Rewound]] = []

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        self.heard.append(rewound)
        tx.execute("DELETE FROM drafts_draft WHERE session = ?", (rewound.session,))
        if self.fails:
            raise TakebackError("drafts.torn", "The drafts are torn")


@pytest.fixture
async def talk(tmp_path, monkeypatch):
    monkeypatch.setattr(DraftsModule, "heard", [])
    async with house(tmp_path / "home", SessionsModule, DraftsModule) as running:
        talk = Talk(running)
        await talk.begin("A talk")
        yield talk


async def story(talk: Talk) -> list[str]:
    """Three messages, each of which touches what an earlier one made."""
    return [
        *await talk.say("m41", "add my job", job="Developer", town="Bern"),
        *await talk.say("m42", "make it senior", job="Senior Developer"),
        *await talk.say("m43", "drop it", job=None),
    ]


async def draft(talk: Talk) -> None:
    await talk.house.change("INSERT OR IGNORE INTO drafts_draft VALUES (?)", SESSION)


async def drafts(talk: Talk) -> int:
    return len(await talk.house.rows("SELECT * FROM drafts_draft"))


async def test_rolling_back_to_a_message_takes_back_it_and_all_after_it(talk):
    await story(talk)
    edited = await talk.edit("m42", "make it junior", roll_back=True)
    assert (edited.turn, edited.rolled_back) == ("m42", 2)
    assert talk.house.values == {"job": "Developer", "town": "Bern"}
    assert await talk.messages() == [("m41", "add my job", "done"), ("m42", "make it junior", "due")]


async def test_the_first_message_rolls_back_everything(talk):
    await story(talk)
    await talk.edit("m41", "start over", roll_back=True)
    assert talk.house.values == {}
    assert await talk.messages() == [("m41", "start over", "due")]


async def test_the_text_alone_leaves_what_was_done_and_drops_how_to_reverse_it(talk):
    acts = await story(talk)
    edited = await talk.edit("m42", "make it junior")
    assert (edited.rolled_back, edited.undo) == (0, None)
    assert "can't be rolled back" in edited.note
    assert talk.house.values == {"town": "Bern"}
    assert await talk.messages() == [("m41", "add my job", "done"), ("m42", "make it junior", "due")]
    states = [(act.state, act.reason) for act in [await talk.house.act(id) for id in acts]]
    assert states == [("done", None)] * 2 + [("final", "turn edited")] * 2
    later = await talk.edit("m41", "start over", roll_back=True)
    assert later.rolled_back == 2
    # The vanished turns are not undone with it, though they rest on what is: town is gone, job was deleted.
    assert talk.house.values == {}


async def test_nothing_of_the_edit_is_in_what_the_agent_sees(talk):
    await story(talk)
    await talk.edit("m42", "make it junior", roll_back=True)
    fresh = Talk(talk.house, "chat-2")
    await fresh.begin("A talk")
    await fresh.say("m41", "add my job")
    await fresh.app().sessions.say(session="chat-2", text="make it junior", turn="m42")
    assert await talk.messages() == await fresh.messages()
    listed = await talk.app().undo.list(session=SESSION)
    assert {act.tool for act in listed.acts} <= {"notes.put", "notes.delete"}


async def test_what_was_rolled_back_by_an_edit_is_not_redone(talk):
    acts = await story(talk)
    edited = await talk.edit("m42", "make it junior", roll_back=True)
    for id in (acts[-1], edited.undo):
        with pytest.raises(RefusedError) as refused:
            await talk.person.undo.redo(id=id)
        assert refused.value.code == "undo.not_undoable"
    assert talk.house.values == {"job": "Developer", "town": "Bern"}


async def test_what_a_module_derived_goes_in_the_same_transaction(talk):
    await story(talk)
    await draft(talk)
    await talk.edit("m43", "keep it", roll_back=True)
    assert await drafts(talk) == 0
    told = [one for one in DraftsModule.heard if one.text is not None][-1]
    assert (told.session, told.turn, told.agent, told.turns) == (SESSION, "m43", "juno", ("m43",))
    await draft(talk)
    await talk.edit("m43", "keep it after all")
    assert await drafts(talk) == 0


@pytest.mark.parametrize("roll_back", [True, False])
async def test_a_module_that_can_not_clear_refuses_the_edit_whole(talk, monkeypatch, roll_back):
    acts = await story(talk)
    await draft(talk)
    monkeypatch.setattr(DraftsModule, "fails", True)
    with pytest.raises(TakebackError, match="torn"):
        await talk.edit("m42", "make it junior", roll_back=roll_back)
    assert talk.house.values == {"town": "Bern"}
    assert [turn for turn, _, _ in await talk.messages()] == ["m41", "m42", "m43"]
    assert {await talk.house.state(id) for id in acts} <= {"done", "failed"}
    assert await drafts(talk) == 1
    assert await talk.house.rows("SELECT * FROM sessions_edit") == []
    monkeypatch.setattr(DraftsModule, "fails", False)
    await talk.edit("m42", "make it junior", roll_back=True)
    assert talk.house.values == {"job": "Developer", "town": "Bern"}


async def test_a_plain_rewind_clears_what_was_derived_and_leaves_the_messages(talk):
    await story(talk)
    await draft(talk)
    await talk.person.undo.rewind(session=SESSION, turn="m42")
    assert await drafts(talk) == 0
    assert [turn for turn, _, _ in await talk.messages()] == ["m41", "m42", "m43"]
    assert all(one.text is None for one in DraftsModule.heard)


async def test_a_session_in_the_middle_of_a_turn_is_busy(talk):
    await story(talk)
    app = talk.app("m44")
    await app.sessions.say(session=SESSION, text="go on", turn="m44")
    await app.sessions.begin(session=SESSION, turn="m44")
    for roll_back in (True, False):
        with pytest.raises(ConflictError) as refused:
            await talk.edit("m42", "make it junior", roll_back=roll_back)
        assert refused.value.code == "session.busy"
    await talk.person.sessions.end(session=SESSION, turn="m44", outcome="cut")
    await talk.edit("m42", "make it junior", roll_back=True)


async def test_nobody_writes_in_a_session_while_it_is_rewound(talk):
    await story(talk)
    begun, go_on = anyio.Event(), anyio.Event()
    talk.house.notebook.waits = (begun, go_on)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: talk.edit("m42", "make it junior", roll_back=True))
        with anyio.fail_after(10):
            await begun.wait()
        with pytest.raises(ConflictError) as refused:
            await talk.app("m44").notes.put(key="job", value="Boss")
        assert refused.value.code == "session.held"
        go_on.set()
    assert talk.house.values == {"job": "Developer", "town": "Bern"}


async def test_what_somebody_else_changed_since_is_a_conflict_and_nothing_happens(talk):
    await story(talk)
    talk.house.values["job"] = "Own boss"
    with pytest.raises(ConflictError):
        await talk.edit("m42", "make it junior", roll_back=True)
    assert talk.house.values == {"job": "Own boss", "town": "Bern"}
    assert len(await talk.messages()) == 3
    skipped = await talk.edit("m42", "make it junior", roll_back=True, skip_conflicts=True)
    assert skipped.rolled_back == 0
    assert talk.house.values == {"job": "Own boss", "town": "Bern"}
    assert [turn for turn, _, _ in await talk.messages()] == ["m41", "m42"]


async def test_a_message_that_did_nothing_rolls_back_those_after_it(talk):
    await talk.say("m1", "hello")
    await talk.say("m2", "note it", job="Developer")
    edited = await talk.edit("m1", "hi", roll_back=True)
    assert edited.rolled_back == 1
    assert talk.house.values == {}
    assert await talk.messages() == [("m1", "hi", "due")]


async def test_when_the_journal_is_past_its_time_the_message_is_still_edited(talk):
    await story(talk)
    await talk.house.change("UPDATE undo_acted SET at = '2020-01-01T00:00:00.000Z'")
    await talk.person.undo.gc(days=1)
    edited = await talk.edit("m42", "make it junior", roll_back=True)
    assert edited.rolled_back == 0
    assert "left to roll back" in edited.note
    assert talk.house.values == {"town": "Bern"}
    assert await talk.messages() == [("m41", "add my job", "done"), ("m42", "make it junior", "due")]


async def test_a_digest_of_another_plan_is_refused(talk):
    await story(talk)
    digest = (await talk.preview("m42")).digest
    await talk.say("m44", "again", job="Captain")
    with pytest.raises(ConflictError) as refused:
        await talk.edit("m42", "make it junior", roll_back=True, digest=digest)
    assert refused.value.code == "undo.plan_changed"
    assert len(await talk.messages()) == 4
    with pytest.raises(UsageError) as wrong:
        await talk.edit("m42", "make it junior", digest=digest)
    assert wrong.value.code == "sessions.digest"
    await talk.edit("m42", "make it junior", roll_back=True, digest=(await talk.preview("m42")).digest)
    assert talk.house.values == {"job": "Developer", "town": "Bern"}


async def test_conversations_of_others_are_not_there(talk):
    await story(talk)
    other = Talk(talk.house, agent="max")
    for call in (
        other.app().sessions.show(session=SESSION),
        other.app().sessions.messages(session=SESSION),
        other.app().sessions.edit(session=SESSION, turn="m42", text="mine now", roll_back=True),
        other.app().sessions.preview(session=SESSION, turn="m42"),
        talk.person.sessions.edit(session="chat-9", turn="m42", text="x"),
    ):
        with pytest.raises(NotFoundError) as refused:
            await call
        assert refused.value.code == "sessions.unknown"
    await other.begin()
    await other.say("n1", "hello")
    with pytest.raises(UsageError) as ambiguous:
        await talk.edit("m42", "x")
    assert ambiguous.value.code == "sessions.ambiguous"
    with pytest.raises(NotFoundError) as foreign:
        await talk.edit("n1", "x", agent="juno")
    assert foreign.value.code == "sessions.unknown_turn"


async def test_a_conversation_that_nobody_keeps_is_not_edited_but_can_be_rewound(talk):
    await talk.house.agent("max", session="shell", turn="p1").notes.put(key="a", value="1")
    with pytest.raises(RefusedError) as refused:
        await talk.person.sessions.edit(session="shell", turn="p1", text="x", roll_back=True)
    assert refused.value.code == "sessions.not_editable"
    assert "takeback rewind --session shell --turn p1" in refused.value.hint
    assert (await talk.person.sessions.preview(session="shell", turn="p1")).total == 1
    await talk.person.undo.rewind(session="shell", turn="p1")
    assert talk.house.values == {}


@pytest.mark.parametrize("text", ["", "  \n", "x" * 10_000_000])
async def test_a_text_that_is_empty_or_huge_is_refused(talk, text):
    await story(talk)
    for call in (talk.edit("m42", text), talk.app().sessions.say(session=SESSION, text=text)):
        with pytest.raises(UsageError) as refused:
            await call
        assert refused.value.code == "sessions.text"
        assert len(str(refused.value)) < 500
    assert len(await talk.messages()) == 3


async def test_an_app_edits_for_the_person_who_uses_it(talk):
    await story(talk)
    edited = await talk.app().sessions.edit(
        session=SESSION, turn="m42", text="make it junior", roll_back=True
    )
    assert edited.rolled_back == 2
    assert talk.house.values == {"job": "Developer", "town": "Bern"}


async def test_a_turn_that_has_the_name_of_a_vanished_one_is_another_turn(talk):
    await talk.say("m1", "one", a="1")
    await talk.say("m2", "two", b="2")
    await talk.edit("m1", "one again")
    first = (await talk.app("m1").notes.put(key="a", value="3")).act
    await talk.say("m2", "two again", b="4")
    await talk.edit("m2", "and again")
    assert await talk.house.state(first) == "done", "only the second m2 has vanished"
    assert (await talk.edit("m1", "start over", roll_back=True)).rolled_back == 1
    assert talk.house.values == {"a": "1", "b": "4"}


async def test_a_later_message_that_acted_first_is_rolled_back_too(talk):
    for turn in ("m1", "m2"):
        await talk.app().sessions.say(session=SESSION, text="go", turn=turn)
    await talk.app("m2").notes.put(key="b", value="2")
    await talk.app("m1").notes.put(key="a", value="1")
    assert (await talk.edit("m1", "stop", roll_back=True)).rolled_back == 2
    assert talk.house.values == {}


async def test_what_vanished_is_not_shown_any_more(talk):
    await story(talk)
    await talk.edit("m42", "make it junior", roll_back=True)
    shown = await talk.app().sessions.show(session=SESSION)
    assert [(one.turn, one.acts, one.standing) for one in shown.turns] == [("m41", 2, 2), ("m42", 0, 0)]
    assert shown.acts == 2


@pytest.mark.parametrize("happened", [True, False])
async def test_an_act_of_unknown_outcome_vanishes_with_its_turn(talk, happened):
    acts = await story(talk)
    await talk.house.change("UPDATE undo_acted SET state = 'unknown' WHERE id = ?", acts[-1])
    await talk.edit("m42", "make it junior")
    settled = await talk.person.undo.settle(id=acts[-1], happened=happened)
    assert settled.state == ("final" if happened else "abandoned")
    assert (await talk.edit("m41", "start over", roll_back=True)).rolled_back == 2
