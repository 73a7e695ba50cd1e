"""Small modules that the kernel's tests run."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict

from takeback import Context, Manifest, Module, tool


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int = 0
    text: str = ""
    ratio: float = 1.0


class Seen(BaseModel):
    caller: str
    origin: str
    chain: list[str]
    session: str | None
    turn: str | None
    dry_run: bool
    roots: list[str] | None
    number: int


class Name(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tool: str
    as_: str | None = None
    force: bool = False


class Done(BaseModel):
    done: bool = True


def seen(ctx: Context, number: int = 0) -> Seen:
    return Seen(
        caller=ctx.caller,
        origin=ctx.origin,
        chain=list(ctx.chain),
        session=ctx.session,
        turn=ctx.turn,
        dry_run=ctx.dry_run,
        roots=None if ctx.scope is None else list(ctx.scope.roots),
        number=number,
    )


class EchoModule(Module):
    """Tools of every reach that tell what they saw."""

    manifest: ClassVar[Manifest] = Manifest(1, "echo", "Tells what it saw.", calls=("*",))

    @tool(effect="read", reach=("person", "agents", "modules", "added"))
    async def all(self, ctx: Context, args: Given) -> Seen:
        """Tell anybody."""
        return seen(ctx, args.number)

    @tool(effect="read", reach=("person",))
    async def person(self, ctx: Context, args: Given) -> Seen:
        """Tell the person."""
        return seen(ctx)

    @tool(effect="read", reach=("agents",))
    async def agents(self, ctx: Context, args: Given) -> Seen:
        """Tell agents."""
        return seen(ctx)

    @tool(effect="read", reach=("modules",))
    async def modules(self, ctx: Context, args: Given) -> Seen:
        """Tell modules."""
        return seen(ctx)

    @tool(effect="read", reach=("person", "agents", "modules", "added"), person_only=True)
    async def own(self, ctx: Context, args: Given) -> Seen:
        """Tell the person alone."""
        return seen(ctx)

    @tool(effect="write", reach=("person", "modules"), presence=True)
    async def there(self, ctx: Context, args: Given) -> Seen:
        """Tell the person who is there."""
        return seen(ctx)

    @tool(effect="write", reach=("person",), presence=True, previews=True)
    async def foretold(self, ctx: Context, args: Given) -> Seen:
        """Tell the person what would be."""
        return seen(ctx)

    @tool(effect="read", reach=("person",), presence=True)
    async def secret(self, ctx: Context, args: Given) -> Seen:
        """Tell the person who is there and asks."""
        return seen(ctx)

    @tool(effect="write", reach=("person", "agents"))
    async def blind(self, ctx: Context, args: Given) -> Seen:
        """Do something that can't be rehearsed."""
        return seen(ctx)

    @tool(effect="write", reach=("person", "agents"), previews=True)
    async def rehearsed(self, ctx: Context, args: Given) -> Seen:
        """Do something that can be rehearsed."""
        return seen(ctx)

    @tool(effect="read", reach=("person", "agents"))
    async def crash(self, ctx: Context, args: Given) -> Seen:
        """Fail in a way that nobody foresaw."""
        raise ValueError(args.text)

    @tool(effect="read", reach=("person", "agents"))
    async def wrong_answer(self, ctx: Context, args: Given) -> Seen:
        """Answer with what was not declared."""
        return Done()  # type: ignore[return-value]


class RelayModule(Module):
    """Passes a call on to the tool it is told."""

    manifest: ClassVar[Manifest] = Manifest(1, "relay", "Passes calls on.", calls=("echo.*", "undo.*"))

    @tool(effect="read", reach=("person", "agents", "modules", "added"))
    async def pass_on(self, ctx: Context, args: Name) -> Seen:
        """Pass a call on."""
        answer: Any = await ctx.call(args.tool, as_=args.as_, force_=args.force)
        return seen(ctx) if not isinstance(answer, Seen) else answer

    async def by_itself(self, name: str) -> Any:
        return await self.host.ctx.call(name)


class SlowModule(Module):
    """Waits inside a call, or inside a transaction."""

    manifest: ClassVar[Manifest] = Manifest(1, "slow", "Waits.")
    migrations = ("CREATE TABLE slow_row (n INTEGER) STRICT;",)

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.inside = anyio.Event()
        self.go = anyio.Event()
        self.in_thread = threading.Event()
        self.release = threading.Event()

    @tool(effect="read", reach=("person",))
    async def wait(self, ctx: Context, args: Given) -> Done:
        """Wait until told to go."""
        self.inside.set()
        await self.go.wait()
        return Done()

    @tool(effect="write", reach=("person",))
    async def write(self, ctx: Context, args: Given) -> Done:
        """Write a row and wait inside the transaction."""

        def fn(tx: Any) -> None:
            tx.execute("INSERT INTO slow_row VALUES (1)")
            self.in_thread.set()
            self.release.wait(30)

        await self.host.store.transaction(fn)
        return Done()


class NeighbourModule(Module):
    """Hears of its neighbours."""

    manifest: ClassVar[Manifest] = Manifest(1, "neighbour", "Listens.")

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.told = 0
        self.heard = anyio.Event()

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        yield

    async def neighbours_changed(self) -> None:
        self.told += 1
        self.heard.set()
