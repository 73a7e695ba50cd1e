"""The HTTP side: a CV, its chat, and what an assistant calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from cv_app import chats, sections
from cv_app.assistant import Assistant
from cv_app.models import Base, Chat, Profile, Run, RunState, User
from takeback import TakebackError
from takeback_acts.rows import Journal


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Said(_In):
    """A message of the person's."""

    content: str = Field(min_length=1, max_length=100_000)


class Edit(Said):
    """A message's new text; `digest` is of the preview that the person said yes to."""

    roll_back: bool = False
    digest: str | None = None


class Ended(_In):
    """How a run ended."""

    state: RunState = RunState.DONE
    reply: str | None = None


def create_app(url: str) -> FastAPI:
    """The app over a database: `sqlite+aiosqlite:///...` or `postgresql+asyncpg://...`."""
    engine = _engine(url)
    journal = Journal(names={"cv_extra": ("extra", "extras")})
    sessions = async_sessionmaker(engine, expire_on_commit=False)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        await journal.install(engine)
        await chats.cut_off(sessions)
        yield
        await engine.dispose()

    app = FastAPI(title="CV", lifespan=life)
    app.state.journal, app.state.sessions = journal, sessions
    _add_refusals(app)
    talk = chats.Chats(sessions, journal)
    _add_people(app, sessions)
    _add_cv(app, sessions)
    _add_chat(app, talk)
    _add_assistant(app, Assistant(sessions, journal), talk)
    return app


def _engine(url: str) -> AsyncEngine:
    engine = create_async_engine(url)
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine.sync_engine, "connect")
        def connected(connection: Any, record: Any) -> None:
            connection.isolation_level = None
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA journal_mode = WAL")

        @event.listens_for(engine.sync_engine, "begin")
        def begun(connection: Any) -> None:
            # Whoever is about to write waits for its turn at once, and not halfway through.
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _add_refusals(app: FastAPI) -> None:
    """What the journal or the database refuses, as HTTP says it."""

    @app.exception_handler(TakebackError)
    async def refused(request: Request, error: TakebackError) -> JSONResponse:
        status = {"usage": 422, "conflict": 409, "refused": 403, "not_found": 404}.get(error.kind, 500)
        return JSONResponse({"detail": {"code": error.code, "message": error.message}}, status)

    @app.exception_handler(IntegrityError)
    async def taken(request: Request, error: IntegrityError) -> JSONResponse:
        return JSONResponse({"detail": {"code": "taken"}}, 409)


async def _user(user: Annotated[int, Header(alias="X-User")]) -> int:
    # Who it is would come from a session's cookie; that is not what this example is about.
    return user


_Me = Annotated[int, Depends(_user)]


def _add_people(app: FastAPI, sessions: async_sessionmaker[AsyncSession]) -> None:
    @app.post("/v1/guests")
    async def guest() -> dict[str, int]:
        return {"user": await _new_user(sessions, None)}

    @app.post("/v1/accounts")
    async def sign_up(email: str, guest: int | None = None) -> dict[str, int]:
        if guest is None:
            return {"user": await _new_user(sessions, email)}
        async with sessions.begin() as session:
            user = await session.get(User, guest)
            if user is None or not user.is_guest:
                raise HTTPException(404, "There is no such guest")
            # The CV, the chat and its journal are the guest's own rows: they stay as they are.
            user.email = email
        return {"user": guest}


async def _new_user(sessions: async_sessionmaker[AsyncSession], email: str | None) -> int:
    async with sessions.begin() as session:
        user = User(email=email)
        session.add(user)
        await session.flush()
        session.add_all([Chat(user_id=user.id), Profile(user_id=user.id)])
        return user.id


def _add_cv(app: FastAPI, sessions: async_sessionmaker[AsyncSession]) -> None:
    @app.get("/v1/cv")
    async def cv(me: _Me) -> dict[str, list[dict[str, Any]]]:
        async with sessions() as session:
            return await sections.all_rows(session, me)

    @app.post("/v1/cv/{section}")
    async def add(me: _Me, section: str, row: dict[str, Any]) -> dict[str, Any]:
        model = sections.model_of(section)
        async with sessions.begin() as session:
            made = model(user_id=me, **sections.values(model, row))
            session.add(made)
            await session.flush()
            return sections.shown(made)

    @app.patch("/v1/cv/{section}/{id}")
    async def change(me: _Me, section: str, id: int, row: dict[str, Any]) -> dict[str, Any]:
        model = sections.model_of(section)
        async with sessions.begin() as session:
            (found,) = await sections.own(session, model, me, [id])
            for name, value in sections.values(model, row).items():
                setattr(found, name, value)
            await session.flush()
            return sections.shown(found)


def _add_chat(app: FastAPI, talk: chats.Chats) -> None:
    @app.get("/v1/chat/me/messages")
    async def messages(me: _Me) -> list[dict[str, Any]]:
        return await talk.messages(me)

    @app.post("/v1/chat/me/messages")
    async def say(me: _Me, said: Said) -> dict[str, int]:
        return _told(await talk.say(me, said.content))

    @app.get("/v1/chat/me/messages/{id}/rollback-preview")
    async def preview(me: _Me, id: int) -> dict[str, Any]:
        return await talk.preview(me, id)

    @app.put("/v1/chat/me/messages/{id}")
    async def edit(me: _Me, id: int, given: Edit) -> dict[str, int]:
        run = await talk.edit(me, id, given.content, roll_back=given.roll_back, digest=given.digest)
        return _told(run)


def _add_assistant(app: FastAPI, assistant: Assistant, talk: chats.Chats) -> None:
    @app.post("/v1/runs/{run}/create_{section}")
    async def create(run: int, section: str, rows: list[dict[str, Any]]) -> dict[str, list[int]]:
        return {"ids": await assistant.create(run, section, rows)}

    @app.post("/v1/runs/{run}/update_{section}/{id}")
    async def update(run: int, section: str, id: int, row: dict[str, Any]) -> None:
        await assistant.update(run, section, id, row)

    @app.post("/v1/runs/{run}/delete_{section}")
    async def delete(run: int, section: str, ids: list[int]) -> None:
        await assistant.delete(run, section, ids)

    @app.post("/v1/runs/{run}/draft")
    async def draft(run: int, draft: dict[str, Any]) -> None:
        await assistant.keep_draft(run, draft)

    @app.post("/v1/runs/{run}/end")
    async def end(run: int, ended: Ended) -> None:
        await talk.end(run, ended.state, ended.reply)


def _told(run: Run) -> dict[str, int]:
    return {"run": run.id, "message": run.message_id}
