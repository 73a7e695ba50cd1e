"""The assistant's side: tools that write to the CV, each in one transaction with what takes it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from cv_app import sections
from cv_app.models import Chat, Run, RunState
from takeback_acts.rows import Journal


@dataclass(frozen=True)
class Work:
    """One call of a tool: whose CV it writes to, and in which session."""

    session: AsyncSession
    user_id: int


class Assistant:
    """What an assistant may do within a run; the language model that decides on it is not part of this."""

    def __init__(self, sessions: async_sessionmaker[AsyncSession], journal: Journal) -> None:
        self._sessions = sessions
        self._journal = journal

    async def create(self, run_id: int, section: str, rows: list[dict[str, Any]]) -> list[int]:
        """Add rows to a section; answers their ids."""
        model = sections.model_of(section)
        async with self._work(run_id, f"create_{section}") as work:
            made = [model(user_id=work.user_id, **sections.values(model, row)) for row in rows]
            work.session.add_all(made)
            await work.session.flush()
            return [row.id for row in made]

    async def update(self, run_id: int, section: str, id: int, given: dict[str, Any]) -> None:
        """Change columns of a row."""
        model = sections.model_of(section)
        async with self._work(run_id, f"update_{section}") as work:
            (row,) = await sections.own(work.session, model, work.user_id, [id])
            for name, value in sections.values(model, given).items():
                setattr(row, name, value)

    async def delete(self, run_id: int, section: str, ids: list[int]) -> None:
        """Remove rows, and what belongs to them."""
        model = sections.model_of(section)
        async with self._work(run_id, f"delete_{section}") as work:
            for row in await sections.own(work.session, model, work.user_id, ids):
                await work.session.delete(row)

    async def keep_draft(self, run_id: int, draft: dict[str, Any]) -> None:
        """Remember what the assistant is halfway through; it is derived from the conversation."""
        async with self._sessions.begin() as session:
            _, chat = await _running(session, run_id)
            chat.draft = draft

    @asynccontextmanager
    async def _work(self, run_id: int, tool: str) -> AsyncIterator[Work]:
        """One transaction around one tool: the writes and their journal row come together or not at all.

        A transaction for a whole run would hold locks for as long as a model thinks. So a run that dies
        halfway keeps what it committed, and all of it is still of its message.
        """
        async with self._sessions.begin() as session:
            run, chat = await _running(session, run_id)
            async with self._journal.act(session, group=chat.id, point=run.message_id, tool=tool):
                yield Work(session, chat.user_id)


async def _running(session: AsyncSession, run_id: int) -> tuple[Run, Chat]:
    """A run under way and its chat, which nobody edits before this transaction ends; 409 when it is over."""
    run = await session.get(Run, run_id)
    if run is None:
        raise HTTPException(404, "There is no such run")
    chat = await session.get_one(Chat, run.chat_id, with_for_update=True)
    await session.refresh(run)
    if run.state is not RunState.RUNNING:
        raise HTTPException(409, "The run is over, so nothing more is written in it")
    return run, chat
