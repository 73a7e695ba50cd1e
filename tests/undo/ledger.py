"""An owner with transactions: entries in a database of its own, of which one takes part in each undo."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict

from takeback import ConflictError, Context, Manifest, Module, TakebackError, faults, tool
from takeback_core.undo import BegunAct, abandon, begin, confirm
from takeback_core.undo.rows import new_id
from tests.undo.notebook import version

_TABLES = """
CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS journal (id TEXT PRIMARY KEY, changes TEXT NOT NULL);
"""

Changes = dict[str, tuple[str | None, str | None]]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Enter(_In):
    """Values by key; None removes an entry. `then` says how the call goes on once they are in."""

    values: dict[str, str | None]
    then: str = ""


class Entry(_In):
    """What one row of the journal changed, or of that these resources alone."""

    entry: str
    only: list[str] | None = None


class Resources(_In):
    resources: list[str]


class Inputs(_In):
    inputs: list[dict[str, Any]]


class Entered(BaseModel):
    act: str | None


class Change(BaseModel):
    resource: str
    action: str
    reason: str = ""
    version: str = ""


class Restored(BaseModel):
    effects: list[Change]


class Versions(BaseModel):
    versions: dict[str, str]


class Item(BaseModel):
    resource: str
    before: str
    after: str


class Happening(BaseModel):
    touched: list[Item]
    summary: str


class Answers(BaseModel):
    answers: list[Happening | None]


@dataclass
class Book:
    """The file of a ledger, and the switches by which tests steer it.

    `failures` are taken one for each inverse that really runs: `""` lets it pass, `before` fails it before
    its effect, `inside` after its intent, `late` after its effect; `wait` sets the first of `waits` then, and
    goes on after the second. `ends` are taken one for each participant that is to commit: `""` lets it,
    `prepare` and `commit` say no, `lost` commits and says no all the same. `silent` can't tell what has
    happened. `held` is taken by who has the database. `opened` counts the transactions that were in a plan.
    """

    path: Path
    failures: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    silent: bool = False
    waits: tuple[anyio.Event, anyio.Event] | None = None
    opened: int = 0

    def open(self) -> None:
        """Open the file; each loop has its own."""
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.executescript(_TABLES)
        self.held = anyio.Semaphore(1)

    def close(self) -> None:
        """Close the file; what is open in it is rolled back."""
        self.db.close()

    def read(self) -> dict[str, str]:
        """What is committed, as any other program sees it."""
        with sqlite3.connect(self.path) as other:
            found = dict(other.execute("SELECT key, value FROM entry"))
        other.close()
        return found

    def write(self, key: str, value: str | None) -> None:
        """What a stranger's program writes."""
        with sqlite3.connect(self.path, timeout=0) as other:
            _put(other, key, value)
        other.close()

    def now(self, key: str) -> str | None:
        """A value as whoever has the database sees it."""
        found = self.db.execute("SELECT value FROM entry WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def change(self, entry: str, changes: Changes) -> None:
        """Change entries and write that down, in the open transaction."""
        for key, (_, value) in changes.items():
            _put(self.db, key, value)
        self.db.execute("INSERT INTO journal VALUES (?, ?)", (entry, json.dumps(changes)))

    def changes(self, entry: str) -> Changes | None:
        """What a row of the journal says was changed."""
        found = self.db.execute("SELECT changes FROM journal WHERE id = ?", (entry,)).fetchone()
        return None if found is None else {key: tuple(two) for key, two in json.loads(found[0]).items()}

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """All of what is done within, or nothing of it."""
        self.db.execute("SAVEPOINT step")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK TO step")
            raise
        finally:
            self.db.execute("RELEASE step")


class Page:
    """The open transaction of one plan, with the acts that are begun in it."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._open = True
        self.begun: list[tuple[Context, BegunAct]] = []

    async def prepare(self) -> None:
        if self._book.ends[:1] == ["prepare"]:
            self._book.ends.pop(0)
            raise ConflictError("ledger.no", "The ledger says no")

    async def commit(self) -> None:
        how = self._book.ends.pop(0) if self._book.ends else ""
        if how == "commit":
            raise TakebackError("ledger.full", "The ledger is full")
        faults.point("ledger.committing")
        self._end("COMMIT")
        faults.point("ledger.committed")
        if how == "lost":
            raise TakebackError("ledger.lost", "Nobody heard what the ledger said")
        for ctx, opened in self.begun:
            with suppress(TakebackError):
                await confirm(ctx, opened)

    async def rollback(self) -> None:
        if self._open:
            self._end("ROLLBACK")
            for ctx, opened in self.begun:
                opened.nothing_is_left()
                await abandon(ctx, opened)

    def _end(self, how: str) -> None:
        self._open = False
        self._book.db.execute(how)
        self._book.held.release()


class Ledger(Module):
    """Entries under keys. What changes them is written down in the same transaction."""

    manifest: ClassVar[Manifest] = Manifest(
        1, "ledger", "Entries for tests.", needs=("undo",), calls=("undo.*", "notes.*")
    )
    book: ClassVar[Book]

    @property
    def _restores(self) -> str:
        return f"{self.name}.restore"

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        self.book.open()
        try:
            yield
        finally:
            self.book.close()

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def enter(self, ctx: Context, args: Enter) -> Entered:
        """Change entries, all at once."""
        await self._take()
        try:
            self.book.db.execute("BEGIN IMMEDIATE")
            opened = await self._enter(ctx, args)
        finally:
            if self.book.db.in_transaction:
                self.book.db.execute("ROLLBACK")
            self.book.held.release()
        if opened is None:
            return Entered(act=None)
        if args.then == "unsure":
            await abandon(ctx, opened)
        elif args.then != "forget":
            await confirm(ctx, opened)
        return Entered(act=opened.id)

    async def _enter(self, ctx: Context, args: Enter) -> BegunAct | None:
        found: Changes = {key: (self.book.now(key), new) for key, new in args.values.items()}
        changes = {key: (old, new) for key, (old, new) in found.items() if old != new}
        if not changes:
            return None
        entry = new_id()
        opened = await begin(
            ctx, tool=f"{self.name}.enter", summary="enter", inverse=(self._restores, {"entry": entry})
        )
        self.book.change(entry, changes)
        if args.then == "fail":
            opened.nothing_is_left()
            await abandon(ctx, opened)
            raise TakebackError("ledger.failed", "It failed")
        faults.point("ledger.entering")
        self.book.db.execute("COMMIT")
        faults.point("ledger.entered")
        opened.confirm_with(touched=self._touched(changes), summary=_summary(changes))
        return opened

    @tool(effect="write", reach=("modules",), previews=True)
    async def restore(self, ctx: Context, args: Entry) -> Restored:
        """Put entries back as an act found them."""
        page = await self._page(ctx)
        assert page is not None
        changes = self.book.changes(args.entry) or {}
        if args.only is not None:
            changes = {key: two for key, two in changes.items() if self._resource(key) in args.only}
        for key in changes:
            ctx.confine(self._resource(key))
        effects = [self._judge(ctx, key, old, new) for key, (old, new) in changes.items()]
        back: Changes = {
            key: (self.book.now(key), old)
            for effect, (key, (old, _)) in zip(effects, changes.items(), strict=True)
            if effect.action != "skip"
        }
        clash = any(effect.action == "conflict" for effect in effects)
        if ctx.dry_run:
            if not clash:
                self.book.change(new_id(), back)
            return Restored(effects=effects)
        expected = ctx.confined_to or {}
        if clash or any(expected.get(self._resource(key)) != version(now) for key, (now, _) in back.items()):
            raise ConflictError("undo.changed", "An entry has changed since the plan was made")
        failure = self.book.failures.pop(0) if self.book.failures else ""
        _fail_if(failure == "before")
        if back:
            await self._put_back(ctx, page, back, failure)
        return Restored(effects=effects)

    async def _put_back(self, ctx: Context, page: Page, back: Changes, failure: str) -> None:
        entry = new_id()
        opened = await begin(
            ctx, tool=self._restores, summary="restore", inverse=(self._restores, {"entry": entry})
        )
        opened.confirm_with(touched=self._touched(back), summary=_summary(back))
        page.begun.append((ctx, opened))
        try:
            with self.book.savepoint():
                _fail_if(failure == "inside")
                self.book.change(entry, back)
                faults.point("ledger.restoring")
                _fail_if(failure == "late")
                if failure == "wait" and self.book.waits is not None:
                    entered, go = self.book.waits
                    entered.set()
                    await go.wait()
        except TakebackError:
            page.begun.remove((ctx, opened))
            opened.nothing_is_left()
            await abandon(ctx, opened)
            raise

    @tool(effect="read", reach=("modules",))
    async def versions(self, ctx: Context, args: Resources) -> Versions:
        """Tell the versions that entries have now, or have in the plan that is being carried out."""
        page = await self._page(ctx)
        found = {name: name.removeprefix(f"{self.name}:") for name in args.resources}
        if page is None:
            told = self.book.read()
            return Versions(versions={name: version(told.get(key)) for name, key in found.items()})
        return Versions(versions={name: version(self.book.now(key)) for name, key in found.items()})

    @tool(effect="read", reach=("modules",))
    async def happened(self, ctx: Context, args: Inputs) -> Answers:
        """Tell which of these have happened, and what they touched."""
        return await self.answer(args.inputs)

    async def answer(self, inputs: list[dict[str, Any]]) -> Answers:
        """What the journal says of these."""
        if self.book.silent:
            raise TakebackError("ledger.away", "The ledger is away", retryable=True)
        await self._take()
        try:
            found = [self.book.changes(one["entry"]) for one in inputs]
        finally:
            self.book.held.release()
        return Answers(answers=[None if one is None else self._happening(one) for one in found])

    def _happening(self, changes: Changes) -> Happening:
        touched = [Item(resource=name, before=old, after=new) for name, old, new in self._touched(changes)]
        return Happening(touched=touched, summary=_summary(changes))

    async def _take(self) -> None:
        with anyio.move_on_after(5):
            await self.book.held.acquire()
            return
        raise TakebackError("ledger.busy", "The ledger is open elsewhere", retryable=True)

    async def _page(self, ctx: Context) -> Page | None:
        """The open transaction of the plan that this is a step of, if it is one."""
        if ctx.joint is None:
            return None
        page: Page | None = ctx.joint.get(self.name)
        if page is None:
            await self._take()
            page = Page(self.book)
            try:
                self.book.db.execute("BEGIN IMMEDIATE")
                ctx.joint.join(self.name, page)
            except BaseException:
                if self.book.db.in_transaction:
                    self.book.db.execute("ROLLBACK")
                self.book.held.release()
                raise
            self.book.opened += 1
        return page

    def _resource(self, key: str) -> str:
        return f"{self.name}:{key}"

    def _touched(self, changes: Changes) -> list[tuple[str, str, str]]:
        return [(self._resource(key), version(old), version(new)) for key, (old, new) in changes.items()]

    def _judge(self, ctx: Context, key: str, old: str | None, new: str | None) -> Change:
        now, name = self.book.now(key), self._resource(key)
        if now == old:
            return Change(resource=name, action="skip", reason="unchanged", version=version(now))
        if now != new and not ctx.force:
            return Change(resource=name, action="conflict", reason="somebody changed it since")
        action = "delete" if old is None else "restore"
        return Change(resource=name, action=action, version=version(old))


def ledger_module(book: Book) -> type[Ledger]:
    """A `Ledger` module over a book."""

    class Opened(Ledger):
        pass

    Opened.book = book
    return Opened


def _put(db: sqlite3.Connection, key: str, value: str | None) -> None:
    if value is None:
        db.execute("DELETE FROM entry WHERE key = ?", (key,))
    else:
        db.execute("INSERT OR REPLACE INTO entry VALUES (?, ?)", (key, value))


def _summary(changes: Changes) -> str:
    return f"entered {', '.join(sorted(changes))}"


def _fail_if(failing: bool) -> None:
    if failing:
        raise TakebackError("ledger.broken", "The ledger is stuck")
