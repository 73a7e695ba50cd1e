"""Conversations where several meet: many taps, others of the same name, who writes meanwhile, who is away."""

from typing import Any, ClassVar

import anyio
import pytest
from pydantic import BaseModel, ConfigDict

from takeback import ConflictError, Context, Manifest, Module, TakebackError, UsageError, tool
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback_core.sessions.module import SessionsModule
from tests.sessions.talk import SESSION, Talk
from tests.undo.house import house

pytestmark = pytest.mark.anyio


class Line(BaseModel):
    """What was said, in which turn."""

    model_config = ConfigDict(extra="forbid")
    turn: str = ""
    text: str = ""


class ChatModule(Module):
    """Keeps its own messages, and acts by itself for each."""

    manifest: ClassVar[Manifest] = Manifest(1, "chat", "A chat.", calls=("sessions.*", "notes.*"))
    migrations = ("CREATE TABLE chat_line (place INTEGER PRIMARY KEY, turn TEXT UNIQUE, text TEXT);",)
    heard: ClassVar[list[Rewound]] = []

    @tool(effect="write", reach=("person",))
    async def ask(self, ctx: Context, args: Line) -> Line:
        """Take a message in, and note it under its turn."""
        own = self.host.ctx._replace(session=SESSION, turn=args.turn)
        await own.sessions.open(session=SESSION)
        await own.sessions.say(session=SESSION, turn=args.turn, text=args.text)
        sql = "INSERT INTO chat_line (turn, text) VALUES (?, ?)"
        await self.host.store.transaction(lambda tx: tx.execute(sql, (args.turn, args.text)))
        await own.notes.put(key=args.turn, value=args.text)
        return args

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        self.heard.append(rewound)
        if rewound.text is not None and rewound.owner == "chat":
            tx.executemany("DELETE FROM chat_line WHERE turn = ?", [(turn,) for turn in rewound.turns[1:]])
            tx.execute("UPDATE chat_line SET text = ? WHERE turn = ?", (rewound.text, rewound.turn))


@pytest.fixture
async def talk(tmp_path, monkeypatch):
    monkeypatch.setattr(ChatModule, "heard", [])
    async with house(tmp_path / "home", SessionsModule, ChatModule) as running:
        talk = Talk(running)
        await talk.begin("A talk")
        yield talk


async def edits(talk: Talk) -> list[dict[str, Any]]:
    return await talk.house.rows("SELECT * FROM sessions_edit")


async def events(talk: Talk) -> list[tuple[str, str]]:
    stored = await talk.house.kernel.events.after(0, limit=10_000)
    return [(one.kind, one.data["turn"]) for one in stored if one.kind.startswith("sessions.")]


# ---------------------------------------------------------------------- the same thing twice


@pytest.mark.parametrize("roll_back", [True, False])
async def test_many_taps_edit_once(talk, roll_back):
    await talk.say("m1", "note it", a="1")
    answers = []

    async def tap(door: str) -> None:
        call = talk.house.person(door=door).sessions.edit
        answers.append(await call(session=SESSION, turn="m1", text="don't", roll_back=roll_back))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(tap, "cli" if number % 2 else "web")
    assert answers == [answers[0]] * 20
    assert answers[0].rolled_back == int(roll_back)
    assert (await events(talk)).count(("sessions.edited", "m1")) == 1


async def test_events_of_an_edit_come_once(talk):
    await talk.say("m1", "note it", a="1")
    await talk.edit("m1", "don't", roll_back=True)
    await talk.edit("m1", "do")
    said, edited = ("sessions.said", "m1"), ("sessions.edited", "m1")
    assert await events(talk) == [said, said, edited, said, edited]


@pytest.mark.parametrize("roll_back", [True, False])
async def test_a_retry_with_the_key_changes_nothing_more_and_hears_the_same(talk, roll_back):
    await talk.say("m1", "note it", a="1")
    how = {"roll_back": roll_back, "key": "k1"}
    first = await talk.edit("m1", "note two", **how)
    app = talk.app("m1")
    await app.sessions.begin(session=SESSION, turn="m1")
    await app.notes.put(key="b", value="2")
    assert await talk.edit("m1", "note two", **how) == first
    await app.sessions.end(session=SESSION, turn="m1")
    assert await talk.edit("m1", "note two", **how) == first
    assert talk.house.values["b"] == "2"
    assert [(row["text"], row["made"]) for row in await edits(talk)] == [("", 1)]
    for other in ({"key": "k1"}, {"key": "k1", "roll_back": True}):
        with pytest.raises(UsageError) as refused:
            await talk.edit("m1", "something else", **other)
        assert refused.value.code == "sessions.key_reused"
    assert await talk.messages() == [("m1", "note two", "done")]
    await talk.edit("m1", "note two", roll_back=roll_back, key="k2")
    assert await talk.messages() == [("m1", "note two", "due")]


async def test_a_key_that_was_refused_may_be_used_again(talk):
    await talk.say("m1", "note it", a="1")
    talk.house.values["a"] = "mine"
    with pytest.raises(ConflictError):
        await talk.edit("m1", "don't", roll_back=True, key="k1")
    talk.house.values["a"] = "1"
    assert (await talk.edit("m1", "don't", roll_back=True, key="k1")).rolled_back == 1


async def test_an_edit_whose_caller_left_is_made_whole(talk):
    await talk.say("m1", "note it", a="1")
    begun, go_on = anyio.Event(), anyio.Event()
    talk.house.notebook.waits = (begun, go_on)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: talk.edit("m1", "don't", roll_back=True))
        with anyio.fail_after(10):
            await begun.wait()
        tasks.cancel_scope.cancel()
    with pytest.raises(ConflictError) as refused:
        await talk.app("m2").notes.put(key="a", value="2")
    assert refused.value.code == "session.held", "it goes on without its caller"
    go_on.set()
    assert (await talk.edit("m1", "don't", roll_back=True)).rolled_back in (0, 1)
    assert await talk.messages() == [("m1", "don't", "due")]
    assert talk.house.values == {}
    assert await edits(talk) == []


# ---------------------------------------------------------------------- who writes meanwhile


async def test_nothing_is_said_or_begun_in_a_conversation_that_is_edited_from_any_session(talk):
    await talk.say("m1", "note it", a="1")
    outside = talk.house.agent("juno", session="another")
    await outside.sessions.say(session=SESSION, turn="m2", text="and now")
    begun, go_on = anyio.Event(), anyio.Event()
    talk.house.notebook.waits = (begun, go_on)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: talk.edit("m1", "don't", roll_back=True))
        with anyio.fail_after(10):
            await begun.wait()
        for call in (
            outside.sessions.say(session=SESSION, text="lost?"),
            outside.sessions.begin(session=SESSION, turn="m2"),
        ):
            with pytest.raises(ConflictError) as refused:
                await call
            assert refused.value.code == "session.held"
        go_on.set()
    assert await talk.messages() == [("m1", "don't", "due")]
    await outside.sessions.say(session=SESSION, text="and now")


async def test_the_end_of_another_turn_frees_nobody(talk):
    await talk.say("m1", "note it", a="1")
    app = talk.app("m2")
    await app.sessions.say(session=SESSION, turn="m2", text="go on")
    await app.sessions.begin(session=SESSION, turn="m2")
    await app.sessions.end(session=SESSION, turn="m1")
    with pytest.raises(ConflictError) as refused:
        await talk.edit("m1", "don't")
    assert refused.value.code == "session.busy"
    with pytest.raises(ConflictError) as second:
        await app.sessions.begin(session=SESSION, turn="m1")
    assert second.value.code == "session.busy"
    await app.sessions.begin(session=SESSION, turn="m2")


async def test_two_edits_at_once_come_one_after_the_other(talk):
    await talk.say("m1", "note it", a="1")
    await talk.say("m2", "note two", b="2")
    done: list[str] = []

    async def edit(turn: str) -> None:
        try:
            await talk.edit(turn, "other", roll_back=True)
            done.append(turn)
        except TakebackError as error:
            done.append(error.code)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(edit, "m1")
        tasks.start_soon(edit, "m2")
    assert done in (["m1", "sessions.unknown_turn"], ["m2", "m1"])
    assert talk.house.values == {}
    assert await talk.messages() == [("m1", "other", "due")]


# ---------------------------------------------------------------------- others of the same name


async def test_the_conversation_of_another_agent_of_that_name_stays(talk):
    other = Talk(talk.house, agent="max")
    await other.begin()
    await talk.say("m1", "note it", a="1")
    await other.say("m1", "note mine", b="2")
    with pytest.raises(UsageError):
        await talk.edit("m1", "don't", roll_back=True)
    assert (await talk.edit("m1", "don't", roll_back=True, agent="juno")).rolled_back == 1
    assert talk.house.values == {"b": "2"}
    assert await other.messages() == [("m1", "note mine", "done")]
    assert (await other.edit("m1", "nor mine", roll_back=True, agent="max")).rolled_back == 1


async def test_a_module_that_keeps_its_own_messages_changes_them_with_the_edit(talk):
    """Its acts are its own, whatever an agent did in a session of that name."""
    await talk.say("m1", "note it", a="1")
    for turn in ("m1", "m2", "m3"):
        await talk.person.chat.ask(turn=turn, text=f"say {turn}")
    ChatModule.heard.clear()
    edited = await talk.edit("m2", "say less", roll_back=True, agent="module:chat")
    assert edited.rolled_back == 2
    assert talk.house.values == {"a": "1", "m1": "say m1"}
    lines = await talk.house.rows("SELECT turn, text FROM chat_line ORDER BY place")
    assert [tuple(line.values()) for line in lines] == [("m1", "say m1"), ("m2", "say less")]
    shown = await talk.person.sessions.show(session=SESSION, agent="module:chat")
    assert [(one.turn, one.text) for one in shown.turns] == [("m1", "say m1"), ("m2", "say less")]
    rehearsed, told = ChatModule.heard
    assert told == rehearsed, "once to rehearse and once in earnest"
    assert (told.turn, told.turns, told.text, told.owner) == ("m2", ("m2", "m3"), "say less", "chat")


@pytest.mark.parametrize("roll_back", [True, False])
async def test_while_the_owner_of_the_messages_is_away_nothing_is_edited(talk, roll_back):
    for turn in ("m1", "m2"):
        await talk.person.chat.ask(turn=turn, text=f"say {turn}")
    await talk.house.kernel.supervisor.disable("chat")
    with pytest.raises(TakebackError) as refused:
        await talk.edit("m2", "say less", roll_back=roll_back, agent="module:chat")
    assert refused.value.code in ("session.away", "undo.failed")
    assert talk.house.values == {"m1": "say m1", "m2": "say m2"}
    shown = await talk.person.sessions.show(session=SESSION, agent="module:chat")
    assert [(one.text, one.standing) for one in shown.turns] == [("say m1", 1), ("say m2", 1)]
    assert await edits(talk) == []
    await talk.house.kernel.supervisor.enable("chat")
    await talk.edit("m2", "say less", roll_back=roll_back, agent="module:chat")


# ---------------------------------------------------------------------- ids and texts from outside


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "\x1b[2J"])
async def test_names_that_are_none_are_refused(talk, name):
    for call in (
        talk.app().sessions.open(session=name),
        talk.app().sessions.say(session=SESSION, turn=name, text="x"),
    ):
        with pytest.raises(UsageError) as refused:
            await call
        assert refused.value.code == "args.invalid"


async def test_a_text_that_is_no_unicode_is_refused(talk):
    await talk.say("m1", "note it", a="1")
    for call in (
        talk.edit("m1", "\ud800", roll_back=True),
        talk.app().sessions.say(session=SESSION, text="\ud800"),
    ):
        with pytest.raises(UsageError) as refused:
            await call
        assert refused.value.code == "args.invalid"
    assert talk.house.values == {"a": "1"}
