"""A module that calls undo's tools for whoever calls it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from takeback import Context, Manifest, Module, tool


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tool: str
    input: dict[str, Any] = {}


class Answer(BaseModel):
    answer: dict[str, Any]


class Deputy(Module):
    """Passes calls on."""

    manifest: ClassVar[Manifest] = Manifest(1, "deputy", "Passes calls on.", calls=("*",))

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def ask(self, ctx: Context, args: Request) -> Answer:
        """Call a tool for whoever asks."""
        answer = await ctx.call(args.tool, args.input)
        return Answer(answer=answer.model_dump(mode="json"))
