"""Conversations: messages, runs, and the edit of a message with or without rolling back what came of it."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException
from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from cv_app.models import Chat, ChatMessage, Run, RunState
from takeback_acts.rows import Journal, JournalConflict


class Chats:
    """A user's conversation; every method is one transaction."""

    def __init__(self, sessions: async_sessionmaker[AsyncSession], journal: Journal) -> None:
        self._sessions = sessions
        self._journal = journal

    async def messages(self, user_id: int) -> list[dict[str, Any]]:
        """What was said, oldest first, as the assistant sees it as well."""
        async with self._sessions() as session:
            chat = await _chat(session, user_id)
            rows = await session.scalars(
                select(ChatMessage).where(ChatMessage.chat_id == chat.id).order_by(ChatMessage.id)
            )
            return [{"id": row.id, "content": row.content, "reply": row.reply} for row in rows]

    async def say(self, user_id: int, content: str) -> Run:
        """A new message of the person's, and the run that it begins."""
        async with self._sessions.begin() as session:
            chat = await _chat(session, user_id, lock=True)
            await _require_idle(session, chat)
            message = ChatMessage(chat_id=chat.id, content=content)
            session.add(message)
            await session.flush()
            return await _begin(session, chat, message.id)

    async def end(self, run_id: int, state: RunState, reply: str | None) -> None:
        """A run is over."""
        async with self._sessions.begin() as session:
            run = await session.get(Run, run_id)
            if run is None:
                raise HTTPException(404, "There is no such run")
            run.state = state
            message = await session.get_one(ChatMessage, run.message_id)
            message.reply = reply

    async def preview(self, user_id: int, message_id: int) -> dict[str, Any]:
        """What rolling back to a message will do: from the plan that does it."""
        async with self._sessions() as session:
            chat = await _chat(session, user_id)
            await _message(session, chat, message_id)
            plan = await self._journal.preview(session, group=chat.id, point=message_id)
            return plan.as_dict()

    async def edit(
        self, user_id: int, message_id: int, content: str, *, roll_back: bool, digest: str | None
    ) -> Run:
        """A message says something else now: what was said later vanishes, and a new run begins.

        With `roll_back` all that was written from the message on is taken back; without it what would take
        it back is dropped, since its messages are about to disappear. Either way the assistant's draft goes,
        for it is derived from what was said.
        """
        async with self._sessions.begin() as session:
            chat = await _chat(session, user_id, lock=True)
            await _require_idle(session, chat)
            message = await _message(session, chat, message_id)
            if roll_back:
                await self._roll_back(session, chat, message_id, digest)
            else:
                await self._journal.forget(session, group=chat.id, point=message_id)
            # A rewind has SQLAlchemy forget what it knew of rows.
            await session.refresh(chat)
            await session.execute(
                delete(ChatMessage).where(ChatMessage.chat_id == chat.id, ChatMessage.id > message_id)
            )
            await session.refresh(message)
            message.content, message.reply, chat.draft = content, None, None
            return await _begin(session, chat, message_id)

    async def _roll_back(
        self, session: AsyncSession, chat: Chat, message_id: int, digest: str | None
    ) -> None:
        try:
            await self._journal.rewind(session, group=chat.id, point=message_id, digest=digest)
        except JournalConflict as conflict:
            raise HTTPException(409, {"code": "conflict", "plan": conflict.plan.as_dict()}) from conflict


async def _chat(session: AsyncSession, user_id: int, *, lock: bool = False) -> Chat:
    """A user's chat; locked, nobody writes in it and nobody else edits it until the transaction ends."""
    found = select(Chat).where(Chat.user_id == user_id)
    chat = await session.scalar(found.with_for_update() if lock else found)
    if chat is None:
        raise HTTPException(404, "There is no such user")
    return chat


async def _message(session: AsyncSession, chat: Chat, message_id: int) -> ChatMessage:
    message = await session.get(ChatMessage, message_id)
    if message is None or message.chat_id != chat.id:
        raise HTTPException(404, "The conversation has no such message")
    return message


async def _require_idle(session: AsyncSession, chat: Chat) -> None:
    running = select(Run.id).where(Run.chat_id == chat.id, Run.state == RunState.RUNNING)
    if await session.scalar(running.limit(1)) is not None:
        raise HTTPException(409, {"code": "agent_busy"})


async def _begin(session: AsyncSession, chat: Chat, message_id: int) -> Run:
    run = Run(chat_id=chat.id, message_id=message_id)
    session.add(run)
    await session.flush()
    return run


async def cut_off(sessions: async_sessionmaker[AsyncSession]) -> None:
    """Runs of a process that is gone are over; what they committed stands, and is still of its message."""
    async with sessions.begin() as session:
        await session.execute(update(Run).where(Run.state == RunState.RUNNING).values(state=RunState.CUT))
