"""Telling of conversations: lists, turns, and what a roll-back will do in words."""

import pytest

from takeback import NotFoundError
from takeback_core.sessions import phrases
from takeback_core.sessions.module import SessionsModule
from takeback_core.sessions.reaching import NOTHING
from takeback_core.undo.models import Effect, Plan, Step
from tests.sessions.talk import SESSION, Talk
from tests.undo.house import house

pytestmark = pytest.mark.anyio


@pytest.fixture
async def talk(tmp_path):
    async with house(tmp_path / "home", SessionsModule) as running:
        talk = Talk(running)
        await talk.begin("A talk")
        yield talk


def plan(*effects: tuple[str, str]) -> Plan:
    steps = [
        Step(act=str(n), summary="", status="clean", effects=[Effect(resource=resource, action=action)])
        for n, (resource, action) in enumerate(effects)
    ]
    return Plan(digest="0" * 64, steps=steps, counts={}, conflicts=[])


def said(*effects: tuple[str, str]) -> list[str]:
    return [group.phrase for group in phrases.grouped(plan(*effects))]


def test_rows_are_counted_by_table_and_by_what_happens_to_them():
    assert said(
        ("rows:main/skill/7/", "delete"),
        ("rows:main/skill/8/", "delete"),
        ("rows:main/profile/1/name", "restore"),
        ("rows:main/profile/1/town", "restore"),
        ("rows:main/certificate/3/", "restore"),
    ) == ["1 certificate will come back", "1 profile will revert", "2 skills will be deleted"]


def test_a_row_that_several_steps_change_is_told_once_as_what_becomes_of_it():
    job = "rows:main/job/7/"
    assert said((job, "restore"), (job + "title", "restore")) == ["1 job will come back"]
    assert said((job + "title", "restore"), (job, "delete")) == ["1 job will be deleted"]
    assert said((job, "restore"), (job + "title", "restore"), (job, "delete")) == []
    assert said((job, "skip"), (job + "title", "conflict")) == []


def test_names_of_tables_are_said_as_people_would():
    found = said(*((f"rows:main/cv.user_language/{n}/", "delete") for n in range(2)))
    assert found == ["2 user languages will be deleted"]
    found = said(*((f"rows:main/category/{n}/", "delete") for n in range(3)))
    assert found == ["3 categories will be deleted"]


def test_files_and_folders_are_told_apart():
    assert said(("files:/a/b", "restore"), ("files:/a/c", "delete"), ("files:/a/d", "delete")) == [
        "2 files will be deleted",
        "1 file will come back",
    ]


async def test_the_preview_is_of_the_plan_that_runs(talk):
    await talk.say("m1", "two notes", a="1", b="2")
    await talk.say("m2", "one more", c="3")
    told = await talk.preview("m1", rows=True)
    assert (told.total, told.conflicts) == (3, 0)
    assert sorted(row.resource for row in told.rows) == ["notes:a", "notes:b", "notes:c"]
    edited = await talk.edit("m1", "no notes", roll_back=True, digest=told.digest)
    assert edited.rolled_back == 3
    assert talk.house.values == {}


async def test_a_preview_of_nothing_promises_nothing(talk):
    await talk.say("m1", "hello")
    told = await talk.preview("m1")
    assert (told.groups, told.total, told.digest) == ([], 0, NOTHING)
    with pytest.raises(NotFoundError):
        await talk.preview("m9")


async def test_sessions_are_listed_with_what_was_done_in_them(talk):
    await talk.say("m1", "two notes", a="1", b="2")
    await talk.house.agent("max", session="shell", turn="p1").notes.put(key="z", value="1")
    empty = Talk(talk.house, "chat-0")
    await empty.begin()
    listed = (await talk.person.sessions.list()).sessions
    by_name = {one.session: one for one in listed}
    assert {name: (one.agent, one.owner, one.acts) for name, one in by_name.items()} == {
        SESSION: ("juno", "sessions", 2),
        "shell": ("max", None, 1),
        "chat-0": ("juno", "sessions", 0),
    }
    assert by_name[SESSION].title == "A talk"
    own = (await talk.house.agent("max").sessions.list()).sessions
    assert [one.session for one in own] == ["shell"]
    assert [one.session for one in (await talk.person.sessions.list(limit=1)).sessions] == [listed[0].session]


async def test_a_session_is_shown_turn_by_turn(talk):
    await talk.say("m1", "two notes", a="1", b="2")
    await talk.say("m2", "hello")
    acts = await talk.say("m3", "one more", c="3")
    await talk.person.undo.run(id=acts[0])
    shown = await talk.person.sessions.show(session=SESSION)
    assert [(one.turn, one.text, one.acts, one.standing) for one in shown.turns] == [
        ("m1", "two notes", 2, 2),
        ("m2", "hello", 0, 0),
        ("m3", "one more", 1, 0),
    ]


async def test_what_ran_when_the_process_ended_runs_no_more(tmp_path):
    async with house(tmp_path / "home", SessionsModule) as running:
        talk = Talk(running)
        await talk.begin()
        app = talk.app("m1")
        await app.sessions.say(session=SESSION, text="note it", turn="m1")
        await app.sessions.begin(session=SESSION, turn="m1")
        await app.notes.put(key="a", value="1")
    async with house(tmp_path / "home", SessionsModule, notebook=running.notebook) as again:
        talk = Talk(again)
        assert await talk.messages() == [("m1", "note it", "cut")]
        edited = await talk.edit("m1", "don't", roll_back=True)
        assert (edited.rolled_back, again.values) == (1, {})
