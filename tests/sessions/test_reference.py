"""The story of a chat that edits a curriculum vitae, its limits and its lessons, each as a test."""

import pytest

from takeback import ConflictError, RefusedError, TakebackError
from takeback_acts.files.module import FilesModule
from takeback_core.sessions.module import SessionsModule
from tests.sessions.talk import SESSION, Talk
from tests.undo.house import house

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(tmp_path):
    async with house(tmp_path / "home", SessionsModule, FilesModule) as running:
        talk = Talk(running)
        await talk.begin("My CV")
        yield talk


async def story(talk: Talk) -> None:
    """Message 41 makes an entry, 42 renames it, 43 deletes it."""
    await talk.say("41", "add my job", seven="Developer")
    await talk.say("42", "make it senior", seven="Senior Developer")
    await talk.say("43", "delete it", seven=None)


async def test_three_messages_on_one_entry_go_back_newest_first(talk):
    await story(talk)
    talk.house.notebook.ran.clear()
    edited = await talk.edit("41", "start over", roll_back=True)
    assert edited.rolled_back == 3
    assert talk.house.values == {}
    assert talk.house.notebook.ran == [["seven"], ["seven"], ["seven"]]


@pytest.mark.parametrize(("turn", "left"), [("42", "Developer"), ("43", "Senior Developer")])
async def test_going_back_is_to_a_point(talk, turn, left):
    await story(talk)
    await talk.edit(turn, "other", roll_back=True)
    assert talk.house.values == {"seven": left}, "a deleted entry comes back under its own key"


async def test_the_unit_is_a_message_and_not_a_call(talk):
    await talk.say("41", "do five things", a="1", b="2", c="3", d="4", e="5")
    edited = await talk.edit("41", "do none", roll_back=True)
    assert (edited.rolled_back, talk.house.values) == (5, {})


async def test_five_calls_of_one_message_have_one_order(talk):
    await talk.begin()
    app = talk.app("41")
    await app.sessions.say(session=SESSION, turn="41", text="change your mind")
    for value in "12345":
        await app.notes.put(key="a", value=value)
    await talk.edit("41", "don't", roll_back=True)
    assert talk.house.values == {}


async def test_the_preview_promises_nothing_that_the_restore_will_not_do(talk):
    await story(talk)
    await talk.say("44", "and a town", town="Bern")
    told = await talk.preview("42", rows=True)
    assert [(group.action, group.count) for group in told.groups] == [("delete", 1), ("restore", 1)]
    before = dict(talk.house.values)
    await talk.edit("42", "other", roll_back=True, digest=told.digest)
    changed = {key for key in before | talk.house.values if before.get(key) != talk.house.values.get(key)}
    assert (
        {row.resource for row in told.rows}
        == {f"notes:{key}" for key in changed}
        == {
            "notes:seven",
            "notes:town",
        }
    )


@pytest.mark.parametrize("how", ["before", "crash", "inside", "late"])
@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_failed_restore_leaves_nothing_half_done(talk, how, after):
    await story(talk)
    talk.house.notebook.break_next(how, after=after)
    with pytest.raises(TakebackError) as failed:
        await talk.edit("41", "start over", roll_back=True)
    assert "as it was before" in failed.value.hint
    assert talk.house.values == {}
    assert [turn for turn, _, _ in await talk.messages()] == ["41", "42", "43"]
    assert (await talk.edit("41", "start over", roll_back=True)).rolled_back == 3


async def test_what_a_text_only_edit_dropped_is_never_replayed(talk):
    await story(talk)
    await talk.edit("43", "keep it")
    await talk.say("43b", "bring it back", seven="Boss")
    await talk.edit("43", "once more", roll_back=True)
    assert talk.house.values == {}, "the deletion stands, for its message is gone"
    with pytest.raises(ConflictError):
        await talk.edit("41", "start over", roll_back=True, digest="0" * 64)


async def test_a_session_in_a_turn_answers_busy(talk):
    await story(talk)
    await talk.app().sessions.say(session=SESSION, turn="44", text="go on")
    await talk.app().sessions.begin(session=SESSION, turn="44")
    for roll_back in (True, False):
        with pytest.raises(ConflictError) as refused:
            await talk.edit("41", "start over", roll_back=roll_back)
        assert (refused.value.code, refused.value.retryable) == ("session.busy", True)


async def test_a_turn_that_dies_halfway_keeps_its_writes_and_still_goes_back_whole(talk):
    app = talk.app("41")
    await app.sessions.say(session=SESSION, turn="41", text="do three things")
    await app.sessions.begin(session=SESSION, turn="41")
    await app.notes.put(key="a", value="1")
    await app.notes.put(key="b", value="2")
    await app.sessions.end(session=SESSION, turn="41", outcome="cut")
    assert talk.house.values == {"a": "1", "b": "2"}
    await talk.edit("41", "do none", roll_back=True)
    assert talk.house.values == {}


# ---------------------------------------------------------------------- limits that are none here


async def test_limit_files_come_back_as_well(talk, tmp_path):
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(b"\xff\xd8\x00photo")
    app = talk.house.agent("juno", session=SESSION, turn="41", scope=[str(tmp_path)])
    await app.sessions.say(session=SESSION, turn="41", text="remove my photo")
    await app.files.delete(path=str(photo))
    assert not photo.exists()
    await talk.edit("41", "keep my photo", roll_back=True)
    assert photo.read_bytes() == b"\xff\xd8\x00photo"


async def test_limit_an_edit_made_by_hand_is_not_written_over(talk):
    await story(talk)
    await talk.say("44", "add it again", seven="Developer", town="Bern")
    talk.house.values["seven"] = "polished by hand"
    with pytest.raises(ConflictError) as refused:
        await talk.edit("44", "don't", roll_back=True)
    assert [one["resource"] for one in refused.value.data["plan"]["conflicts"]] == ["notes:seven"]
    edited = await talk.edit("44", "don't", roll_back=True, skip_conflicts=True)
    assert talk.house.values == {"seven": "polished by hand"}
    assert [one.resource for one in edited.left] == ["notes:seven"]


async def test_limit_time_after_the_journal_has_gone_there_is_nothing_to_roll_back(talk):
    await story(talk)
    await talk.house.change("UPDATE undo_acted SET at = '2020-01-01T00:00:00.000Z'")
    await talk.person.undo.gc(days=1)
    edited = await talk.edit("42", "other", roll_back=True)
    assert (edited.rolled_back, edited.undo) == (0, None)
    assert edited.note.startswith("Nothing")
    assert (await talk.preview("42")).groups == []


async def test_limit_guests_whose_conversation_nobody_keeps_can_still_rewind(talk):
    await talk.house.agent("guest", session="quick", turn="1").notes.put(key="a", value="1")
    with pytest.raises(RefusedError) as refused:
        await talk.person.sessions.edit(session="quick", turn="1", text="x", roll_back=True)
    assert refused.value.code == "sessions.not_editable"
    await talk.person.undo.rewind(session="quick", turn="1")
    assert talk.house.values == {}


async def test_typing_undo_rolls_nothing_back(talk):
    await story(talk)
    await talk.say("44", "undo")
    assert [act.state for act in (await talk.person.undo.list(session=SESSION)).acts] == ["done"] * 3


# ---------------------------------------------------------------------- lessons


async def test_lesson_the_model_is_told_nothing(talk):
    await story(talk)
    await talk.edit("42", "other", roll_back=True)
    fresh = Talk(talk.house, "fresh")
    await fresh.begin("My CV")
    await fresh.say("41", "add my job")
    await fresh.app().sessions.say(session="fresh", turn="42", text="other")
    assert await talk.messages() == await fresh.messages()
    shown = await talk.app().sessions.show(session=SESSION)
    assert [(one.turn, one.text, one.acts) for one in shown.turns] == [
        ("41", "add my job", 1),
        ("42", "other", 0),
    ]


async def test_lesson_an_edit_of_an_edit_of_an_edit_is_a_conversation_like_any_other(talk):
    await story(talk)
    for word in ("first", "second", "third"):
        await talk.edit("42", word, roll_back=True)
        await talk.app("42").sessions.begin(session=SESSION, turn="42")
        await talk.app("42").notes.put(key="seven", value=word)
        await talk.app("42").sessions.end(session=SESSION, turn="42")
        await talk.person.undo.rewind(session=SESSION, turn="42")
        assert talk.house.values == {"seven": "Developer"}
        await talk.app("42").notes.put(key="town", value=word)
    await talk.edit("41", "start over", roll_back=True)
    assert talk.house.values == {}


async def test_lesson_a_single_act_that_was_undone_before_stays_so(talk):
    acts = await talk.say("41", "two things", a="1", b="2")
    await talk.person.undo.run(id=acts[0])
    assert (await talk.edit("41", "none", roll_back=True)).rolled_back == 1
    assert talk.house.values == {}
    with pytest.raises(RefusedError):
        await talk.person.undo.redo(id=acts[0])
