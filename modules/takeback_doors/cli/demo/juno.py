"""The agent of the demo: the official MCP client, over Streamable HTTP, with its own token."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

SESSION = "tidy-up"
_CHAPTER = "# Chapter {}\n\nBetter.\n"
TURNS = ("rewrite the docs", "restructure the kernel", "clean up")


class Juno:
    """Works on a folder with the tools that takeback gives it."""

    def __init__(self, client: Client, root: Path) -> None:
        self._client = client
        self._root = root
        self._turn = TURNS[0]
        self.acts = 0

    async def work(self) -> None:
        """Three turns of at least thirty acts: writing, editing, moving and deleting."""
        self._turn = TURNS[0]
        await self._rewrite_documents()
        self._turn = TURNS[1]
        await self._restructure_kernel()
        self._turn = TURNS[2]
        await self._clean_up()

    async def _rewrite_documents(self) -> None:
        pages = sorted(path.name for path in (self._root / "docs").glob("*.md"))
        for page in pages:
            first = (self._root / "docs" / page).read_text().splitlines()[0]
            await self._do("edit", path=f"docs/{page}", old=f"{first}\n", new=f"{first} (improved)\n")
        for number in range(1, 9):
            await self._do("write", path=f"docs/chapter-{number}.md", content=_CHAPTER.format(number))
        await self._do("write", path="docs/pictures/logo.bin", content_base64=_bytes(b"\x00\xff not a logo"))
        await self._do("edit", path="docs/chapter-1.md", old="Better.", new="Much better.")

    async def _restructure_kernel(self) -> None:
        await self._do("make_dir", path="kernel/core")
        for name in ("router.py", "reach.py", "tools.py", "events.py", "store.py"):
            await self._do("move", path=f"kernel/{name}", to=f"kernel/core/{name}")
        await self._do("write", path="kernel/core/__init__.py", content="")
        await self._do("edit", path="kernel/core/reach.py", old="def decide(", new="def decide_anything(")
        await self._do("write", path="kernel/build.sh", content="#!/bin/sh\nexit 1\n")
        await self._do("move", path="docs/chapter-2.md", to="kernel/core/notes.md")

    async def _clean_up(self) -> None:
        for name in ("errors.py", "callers.py", "settings.py", "latest"):
            await self._do("delete", path=f"kernel/{name}")
        await self._do("delete", path="docs/pictures", recursive=True)
        await self._do("delete", path="kernel/core", recursive=True)
        await self._do("delete", path="docs/chapter-3.md")

    async def _do(self, verb: str, **arguments: Any) -> None:
        arguments |= {key: self._at(arguments[key]) for key in ("path", "to") if key in arguments}
        meta = {"takeback/session": SESSION, "takeback/turn": self._turn}
        answer = await self._client.call_tool(f"files.{verb}", arguments, meta=meta)  # type: ignore[arg-type]
        if answer.is_error:
            raise RuntimeError(f"juno could not {verb} {arguments['path']}: {answer.content}")
        self.acts += 1

    def _at(self, path: str) -> str:
        return str(self._root / path)


@asynccontextmanager
async def connected(url: str, token: str, root: Path) -> AsyncIterator[Juno]:
    """juno at the daemon's door."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            yield Juno(client, root)


def _bytes(content: bytes) -> str:
    return base64.b64encode(content).decode()
