"""Sessions that are held while their past is changed, and what modules clear with it."""

from dataclasses import replace
from typing import ClassVar

import anyio
import pytest

from takeback import ConflictError, Context, Host, Kernel, Manifest, Module, TakebackError, tool
from takeback.rewinding import Rewound
from takeback.store import Transaction
from tests.kernel.samples import Done, Given

pytestmark = pytest.mark.anyio
AGENT = "mcp:agent:juno"


class BookModule(Module):
    """Writes notes, and keeps a draft for each session that vanishes with its past."""

    manifest: ClassVar[Manifest] = Manifest(1, "book", "Notes and drafts.")
    migrations = ("CREATE TABLE book_draft (session TEXT PRIMARY KEY, text TEXT NOT NULL);",)
    broken: ClassVar[bool] = False

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.begun, self.go_on = anyio.Event(), anyio.Event()

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def note(self, ctx: Context, args: Given) -> Done:
        """Write a note."""
        return Done()

    @tool(effect="write", reach=("person", "agents"))
    async def dawdle(self, ctx: Context, args: Given) -> Done:
        """Write two notes with a pause between them."""
        self.begun.set()
        await self.go_on.wait()
        done: Done = await ctx.call("book.note", {"text": args.text})
        return done

    @tool(effect="read", reach=("person", "agents"))
    async def look(self, ctx: Context, args: Given) -> Done:
        """Read a note."""
        return Done()

    @tool(effect="write", reach=("person", "agents"))
    async def change_past(self, ctx: Context, args: Given) -> Done:
        """Hold a session, write in it all the same, and tell everybody of the change."""
        with self.host.tools.holds.hold(ctx, args.text):
            self.begun.set()
            await ctx.call("book.note", {"text": "within"})
            await self.go_on.wait()
            await self.host.store.transaction(
                lambda tx: self.host.rewound(tx, Rewound(session=args.text, turn="t2"))
            )
        return Done()

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        tx.execute("DELETE FROM book_draft WHERE session = ?", (rewound.session,))
        if self.broken:
            raise TakebackError("book.torn", "The drafts can't be read")


class QuietModule(Module):
    """Has nothing to clear."""

    manifest: ClassVar[Manifest] = Manifest(1, "quiet", "Nothing.")


def book(kernel: Kernel) -> BookModule:
    module = kernel.supervisor.life("book").module
    assert isinstance(module, BookModule)
    return module


@pytest.fixture
async def kernel(tmp_path):
    async with Kernel(tmp_path / "home", settings={}, modules=[BookModule, QuietModule]) as running:
        yield running


async def begin(tasks, kernel: Kernel, ctx: Context, name: str, text: str) -> None:
    book(kernel).begun = anyio.Event()
    tasks.start_soon(ctx.call, name, {"text": text})
    with anyio.fail_after(10):
        await book(kernel).begun.wait()


async def test_nobody_begins_to_write_in_a_held_session(kernel):
    juno, other = (kernel.enter(AGENT, session=name) for name in ("s1", "s2"))
    async with anyio.create_task_group() as tasks:
        await begin(tasks, kernel, kernel.enter("cli:person"), "book.change_past", "s1")
        with pytest.raises(ConflictError) as refused:
            await juno.call("book.note", {"text": "a"})
        assert (refused.value.code, refused.value.retryable) == ("session.held", True)
        assert (await juno.call("book.look", {"text": "a"})).done
        assert (await other.call("book.note", {"text": "b"})).done
        book(kernel).go_on.set()
    assert (await juno.call("book.note", {"text": "c"})).done


async def test_the_past_of_a_session_that_is_writing_can_not_be_changed(kernel):
    async with anyio.create_task_group() as tasks:
        await begin(tasks, kernel, kernel.enter(AGENT, session="s1"), "book.dawdle", "a")
        with pytest.raises(ConflictError) as refused:
            await kernel.enter("cli:person").call("book.change_past", {"text": "s1"})
        assert refused.value.code == "session.busy"
        assert kernel.router.holds.is_writing("s1")
        book(kernel).go_on.set()
    assert not kernel.router.holds.is_writing("s1")
    await kernel.enter("cli:person").call("book.change_past", {"text": "s1"})


async def test_a_session_may_hold_itself_but_only_one_at_a_time(kernel):
    juno = kernel.enter(AGENT, session="s1")
    async with anyio.create_task_group() as tasks:
        await begin(tasks, kernel, juno, "book.change_past", "s1")
        with pytest.raises(ConflictError) as refused:
            await kernel.enter("cli:person").call("book.change_past", {"text": "s1"})
        assert refused.value.code in ("session.busy", "session.held")
        book(kernel).go_on.set()
    await juno.call("book.note", {"text": "again"})


async def test_a_call_that_is_refused_or_cancelled_is_no_longer_counted(kernel):
    juno = kernel.enter(AGENT, session="s1")
    with pytest.raises(TakebackError):
        await juno.call("book.note", {"wrong": 1})
    assert not kernel.router.holds.is_writing("s1")
    with anyio.move_on_after(0.01):
        await juno.call("book.dawdle", {"text": "a"})
    assert not kernel.router.holds.is_writing("s1")


async def test_modules_clear_what_they_derived_in_the_same_transaction(kernel, monkeypatch):
    store = kernel.store

    async def drafts() -> list[str]:
        sql = "SELECT session FROM book_draft ORDER BY session"
        return [row["session"] for row in await store.read(lambda db: db.execute(sql).fetchall())]

    def draft(tx: Transaction) -> None:
        tx.executemany("INSERT INTO book_draft VALUES (?, 'half')", [("s1",), ("s2",)])

    await store.transaction(draft)
    person = kernel.enter("cli:person")
    book(kernel).go_on.set()
    monkeypatch.setattr(BookModule, "broken", True)
    with pytest.raises(TakebackError, match="can't be read"):
        await person.call("book.change_past", {"text": "s1"})
    assert await drafts() == ["s1", "s2"]
    monkeypatch.setattr(BookModule, "broken", False)
    await person.call("book.change_past", {"text": "s1"})
    assert await drafts() == ["s2"]


async def test_a_module_that_is_off_is_not_told(kernel):
    await kernel.supervisor.disable("book")
    await kernel.store.transaction(
        lambda tx: kernel.supervisor.life("quiet").module.host.rewound(tx, Rewound("s1", None))
    )


async def test_who_asked_says_what_all_are_told_and_each_is_told_once(kernel, monkeypatch):
    heard: list[Rewound] = []
    monkeypatch.setattr(BookModule, "on_rewind", lambda self, tx, rewound: heard.append(rewound))
    monkeypatch.setattr(BookModule, "amend", lambda self, tx, rewound: replace(rewound, text="new"))
    host = kernel.supervisor.life("quiet").module.host
    asked = Rewound("s1", "t1", asker="book")
    await kernel.store.transaction(lambda tx: host.rewound(tx, asked))
    assert heard == [replace(asked, text="new")]


@pytest.mark.parametrize("part", ["asker", "owner"])
@pytest.mark.parametrize("name", ["book", "quiet", "nobody"])
async def test_without_who_keeps_a_part_of_it_the_past_stays(kernel, part, name):
    """One is off, one keeps nothing, one does not exist; it is a kind of error that time mends."""
    await kernel.supervisor.disable("book")
    host = kernel.supervisor.life("quiet").module.host
    with pytest.raises(TakebackError) as refused:
        await kernel.store.transaction(lambda tx: host.rewound(tx, Rewound("s1", None, **{part: name})))
    error = refused.value
    assert (error.code, error.retryable, error.kind) == ("session.away", True, "failed")
