"""The agents module: who may come in as an agent, with which token, and what each may touch."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
from anyio.abc import TaskGroup

from takeback import (
    Check,
    ConflictError,
    Context,
    Host,
    Module,
    NotFoundError,
    RefusedError,
    UsageError,
    tool,
)
from takeback.callers import is_name
from takeback.store import Transaction
from takeback_core.agents import roots, tables
from takeback_core.agents.expiry import moment_of
from takeback_core.agents.models import (
    Add,
    Added,
    Agents,
    AgentsChanged,
    Changed,
    Grant,
    Known,
    Named,
    Nothing,
    Token,
)
from takeback_core.agents.roster import Record, Roster, digest_of, mint, without_roots, without_table

_SAVE = "INSERT OR REPLACE INTO agents (name, digest, roots, assistant, created, expires, revoked, tables)"
_PERSON = ("person",)


class AgentsModule(Module):
    """Agents, their tokens and their scopes.

    What a change takes away is out of memory before it is stored, and what it gives comes in after: no
    listener of the change and no call that follows it can meet a right that is gone.
    """

    migrations = (
        """
        CREATE TABLE agents (
            name TEXT PRIMARY KEY,
            digest BLOB NOT NULL UNIQUE,
            roots TEXT NOT NULL,
            assistant INTEGER NOT NULL,
            created REAL NOT NULL,
            expires REAL,
            revoked REAL
        ) WITHOUT ROWID;
        """,
        "ALTER TABLE agents ADD COLUMN tables TEXT NOT NULL DEFAULT '[]';",
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._roster = Roster()
        self._one_at_a_time = anyio.Lock()

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Read every agent into memory, where each call looks for its own."""
        for row in await self.host.store.read(lambda db: db.execute("SELECT * FROM agents").fetchall()):
            self._roster.put(Record.of(row))
        yield

    @tool(effect="write", reach=_PERSON, person_only=True)
    async def add(self, ctx: Context, args: Add) -> Added:
        """Add an agent and answer its token, which is shown only now.

        Raises UsageError `agent.name`, `agent.expires`, `agent.table`, RefusedError `agent.root`,
        ConflictError `agent.exists`, `agent.assistant`.
        """
        if not is_name(args.name):
            raise UsageError(
                "agent.name",
                f"{args.name!r:.80} can't be an agent's name",
                "Use 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or a digit.",
            )
        granted = roots.without_doubles(roots.resolve(root, self.host.home) for root in args.roots)
        readable = tuple(dict.fromkeys(map(tables.resolve, args.tables)))
        expires = moment_of(args.expires)
        async with self._one_at_a_time:
            self._check_free(args)
            token = mint()
            record = Record(
                args.name,
                digest_of(token),
                tuple(granted),
                args.assistant,
                time.time(),
                expires=expires,
                tables=readable,
            )
            await self._save(record)
        return Added(agent=record.shown(), token=token)

    @tool(effect="read", reach=("person", "modules"), name="list")
    async def list_agents(self, ctx: Context, args: Nothing) -> Agents:
        """List the agents, revoked ones too."""
        return Agents(agents=[record.shown() for record in self._roster.all()])

    @tool(effect="write", reach=_PERSON, person_only=True)
    async def rotate(self, ctx: Context, args: Named) -> Added:
        """Give an agent a new token; the old one ends at once."""
        async with self._one_at_a_time:
            record = self._living(args.name)
            token = mint()
            changed = replace(record, digest=digest_of(token))
            await self._save(changed, narrowed=replace(record, revoked=time.time()))
        return Added(agent=changed.shown(), token=token)

    @tool(effect="write", reach=_PERSON, person_only=True, idempotent=True)
    async def revoke(self, ctx: Context, args: Named) -> Changed:
        """End an agent's token for good; what it did stays in the log and can be taken back."""
        async with self._one_at_a_time:
            record = self._known(args.name)
            if record.revoked is None:
                record = replace(record, revoked=time.time())
                await self._save(record, narrowed=record)
        return Changed(agent=record.shown())

    @tool(effect="write", reach=_PERSON, person_only=True, presence=True, previews=True, idempotent=True)
    async def grant(self, ctx: Context, args: Grant) -> Changed:
        """Let an agent touch one more folder, or one more table of a connected database.

        A rehearsal answers the agent as it would be. Raises RefusedError `agent.root`, UsageError
        `agent.table`, NotFoundError `agent.unknown`, ConflictError `agent.revoked`.
        """
        root = () if args.root is None else (roots.named_outright(args.root, self.host.home),)
        table = () if args.table is None else (tables.resolve(args.table),)
        async with self._one_at_a_time:
            record = self._living(args.name)
            if not {*root, *table} <= {*record.roots, *record.tables}:
                record = replace(record, roots=(*record.roots, *root), tables=(*record.tables, *table))
                if not ctx.dry_run:
                    await self._save(record)
        return Changed(agent=record.shown())

    @tool(effect="write", reach=_PERSON, person_only=True)
    async def withdraw(self, ctx: Context, args: Grant) -> Changed:
        """Take a folder or a table away from an agent; it need not exist any more."""
        async with self._one_at_a_time:
            record = self._known(args.name)
            changed = _without_root(record, args.root) if args.root is not None else record
            if args.table is not None:
                changed = _without_table(record, args.table)
            await self._save(changed, narrowed=changed)
        return Changed(agent=changed.shown())

    @tool(effect="read", reach=("modules",))
    async def authenticate(self, ctx: Context, args: Token) -> Known:
        """Tell whose token this is; unknown, revoked and expired ones are refused with the same words."""
        record = self._roster.holder(args.token)
        refusal = "unknown" if record is None else record.refusal()
        if record is None or refusal:
            self.host.log.warning("refused a token: %s (%s)", refusal, record.name if record else "nobody's")
            raise RefusedError(
                "agent.token",
                "The token is not accepted",
                "Ask the person for a new one: `takeback agents rotate NAME`.",
            )
        return Known(
            name=record.name,
            roots=list(record.roots),
            tables=list(record.tables),
            assistant=record.assistant,
        )

    async def checks(self) -> list[Check]:
        """Whether every granted folder is still there."""
        found = []
        for record in self._roster.all():
            if record.revoked is None:
                found += [self._check_root(record.name, root) for root in record.roots]
        return found

    def _check_root(self, name: str, root: str) -> Check:
        try:
            ok, detail = roots.resolve(root, self.host.home) == root, root
        except RefusedError as error:
            ok, detail = False, error.message
        return Check(
            f"root of {name}",
            ok,
            detail,
            "" if ok else f"`takeback agents withdraw {name} --root {root}` takes it away.",
        )

    def _check_free(self, args: Add) -> None:
        old = self._roster.named(args.name)
        if old is not None and old.revoked is None:
            raise ConflictError(
                "agent.exists",
                f"There is an agent {args.name} already",
                f"`takeback agents rotate {args.name}` gives it a new token.",
            )
        other = self._roster.assistant()
        if args.assistant and other is not None:
            raise ConflictError(
                "agent.assistant",
                f"{other.name} is the assistant already",
                f"Add this one without --assistant, or revoke {other.name} first.",
            )

    def _known(self, name: str) -> Record:
        record = self._roster.named(name)
        if record is None:
            raise NotFoundError(
                "agent.unknown", f"There is no agent {name!r:.80}", "`takeback agents list` shows them all."
            )
        return record

    def _living(self, name: str) -> Record:
        record = self._known(name)
        if record.revoked is not None:
            raise ConflictError(
                "agent.revoked", f"Agent {name} was revoked", f"`takeback agents add {name}` brings it back."
            )
        return record

    async def _save(self, record: Record, *, narrowed: Record | None = None) -> None:
        before = self._roster.named(record.name)
        if narrowed is not None:
            self._roster.put(narrowed)

        def store(tx: Transaction) -> None:
            tx.execute(f"{_SAVE} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", record.row())
            tx.emit(AgentsChanged(name=record.name))

        try:
            # Cancelled half-way nobody would know which of the two states is the stored one.
            with anyio.CancelScope(shield=True):
                await self.host.store.transaction(store)
        except Exception:
            if narrowed is not None and before is not None:
                self._roster.put(before)
            raise
        self._roster.put(record)


def _without_root(record: Record, root: str) -> Record:
    changed = without_roots(record, roots.spellings(root))
    if changed == record:
        raise NotFoundError(
            "agent.root_unknown",
            f"{root!r} is not a root of agent {record.name}",
            f"Its roots: {', '.join(record.roots) or 'none'}.",
        )
    return changed


def _without_table(record: Record, table: str) -> Record:
    changed = without_table(record, table)
    if changed == record:
        raise NotFoundError(
            "agent.table_unknown",
            f"{table!r:.200} was not granted to agent {record.name}",
            f"Its tables: {', '.join(record.tables) or 'none'}.",
        )
    return changed
