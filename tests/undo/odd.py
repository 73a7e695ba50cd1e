"""A module with a tool for each ground on which an inverse is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from takeback import Context, Kernel, Manifest, Module, TakebackError, tool


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str


class Ok(BaseModel):
    ok: bool = True


class Odd(Module):
    """Tools that may and may not stand as inverses."""

    manifest: ClassVar[Manifest] = Manifest(1, "odd", "Odd tools.", calls=("undo.*",))
    PERSON_ONLY: ClassVar[frozenset[str]] = frozenset({"private"})
    HUMAN_ONLY: ClassVar[frozenset[str]] = frozenset({"human"})
    texts: ClassVar[list[str]] = []

    @tool(effect="write", reach=("modules",))
    async def fix(self, ctx: Context, args: Text) -> Ok:
        """Stand as an inverse; the text `fail` fails it, once."""
        self.texts.append(args.text)
        if self.texts == ["fail"]:
            raise TakebackError("odd.failed", "It failed")
        return Ok()

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def open(self, ctx: Context, args: Text) -> Ok:
        """Stand as an inverse that others see as well."""
        return Ok()

    @tool(effect="write", reach=("modules",), outward=True)
    async def send(self, ctx: Context, args: Text) -> Ok:
        """Leave the machine."""
        return Ok()

    @tool(effect="write", reach=("modules",), presence=True)
    async def sign(self, ctx: Context, args: Text) -> Ok:
        """Need the person to be there."""
        return Ok()

    @tool(effect="write", reach=("person", "modules"), person_only=True)
    async def secret(self, ctx: Context, args: Text) -> Ok:
        """Be the person's by its own flag."""
        return Ok()

    @tool(effect="write", reach=("person", "modules"))
    async def private(self, ctx: Context, args: Text) -> Ok:
        """Be on the owner's PERSON_ONLY list."""
        return Ok()

    @tool(effect="write", reach=("person", "modules"))
    async def human(self, ctx: Context, args: Text) -> Ok:
        """Be on the owner's HUMAN_ONLY list."""
        return Ok()

    @tool(effect="write", reach=("person",))
    async def surface(self, ctx: Context, args: Text) -> Ok:
        """Be reached from the person's surfaces alone."""
        return Ok()

    @tool(effect="write", reach=("person", "agents"))
    async def outside(self, ctx: Context, args: Text) -> Ok:
        """Be reached by everybody but modules."""
        return Ok()


def offer_anew(kernel: Kernel, name: str, **changes: Any) -> None:
    """Withdraw odd's tools and offer them again, one of them declared otherwise."""
    life = kernel.supervisor.lives["odd"]
    assert life.module is not None
    specs = tuple(replace(s, **changes) if s.name == name else s for s in life.module.tools)
    kernel.router.withdraw("odd")
    kernel.router.offer(life.module, specs, life.gate)
