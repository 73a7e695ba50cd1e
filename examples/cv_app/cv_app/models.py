"""The tables: eight sections of a CV, and the conversations in which an assistant writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from sqlalchemy import JSON, DateTime, ForeignKey, Numeric, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """What all tables have in common."""


class Owned:
    """A row of somebody's CV."""

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)


class User(Base):
    """Who has a CV; a guest has one as well, and may sign up later."""

    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str | None] = mapped_column(String(200), unique=True)

    @property
    def is_guest(self) -> bool:
        """Whether the user has not signed up."""
        return self.email is None


class Profile(Owned, Base):
    """The head of a CV."""

    __tablename__ = "profile"
    name: Mapped[str] = mapped_column(default="")
    headline: Mapped[str] = mapped_column(default="")
    summary: Mapped[str] = mapped_column(default="")


class Skill(Owned, Base):
    """Something the person can."""

    __tablename__ = "skill"
    __table_args__ = (UniqueConstraint("user_id", "name", name="skill_once"),)
    name: Mapped[str]
    level: Mapped[int | None]


class Experience(Owned, Base):
    """A job, with what was done in it."""

    __tablename__ = "experience"
    title: Mapped[str]
    company: Mapped[str] = mapped_column(default="")
    started: Mapped[date | None]
    salary: Mapped[Decimal | None] = mapped_column(Numeric(12, 2))
    tasks: Mapped[list[str]] = mapped_column(JSON, default=list)
    projects: Mapped[list[CvProject]] = relationship(cascade="all, delete-orphan", passive_deletes=True)


class UserLanguage(Owned, Base):
    """A language and how well it is spoken."""

    __tablename__ = "user_language"
    name: Mapped[str]
    level: Mapped[str] = mapped_column(String(2))


class Education(Owned, Base):
    """A school."""

    __tablename__ = "education"
    school: Mapped[str]
    degree: Mapped[str] = mapped_column(default="")
    ended: Mapped[date | None]


class Certificate(Owned, Base):
    """A certificate, with the bytes of its seal."""

    __tablename__ = "certificate"
    name: Mapped[str]
    issued: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    seal: Mapped[bytes | None]


class CvProject(Owned, Base):
    """A project, by itself or of a job; it goes with the job."""

    __tablename__ = "cv_project"
    name: Mapped[str]
    experience_id: Mapped[int | None] = mapped_column(ForeignKey("experience.id", ondelete="CASCADE"))


class CvExtra(Owned, Base):
    """Anything else."""

    __tablename__ = "cv_extra"
    kind: Mapped[str]
    content: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)


SECTIONS: dict[str, type[Any]] = {
    "profile": Profile,
    "skill": Skill,
    "experience": Experience,
    "user_language": UserLanguage,
    "education": Education,
    "certificate": Certificate,
    "cv_project": CvProject,
    "cv_extra": CvExtra,
}


class Chat(Base):
    """A user's conversation; `draft` is what the assistant is halfway through."""

    __tablename__ = "chats"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    draft: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class ChatMessage(Base):
    """A message of the person's, and the assistant's reply to it."""

    __tablename__ = "chat_messages"
    id: Mapped[int] = mapped_column(primary_key=True)
    chat_id: Mapped[int] = mapped_column(ForeignKey("chats.id", ondelete="CASCADE"), index=True)
    content: Mapped[str]
    reply: Mapped[str | None]


class RunState(Enum):
    """How far a run has come; `cut` when it died halfway."""

    RUNNING = "running"
    DONE = "done"
    CUT = "cut"


class Run(Base):
    """The assistant at work on a message."""

    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    chat_id: Mapped[int] = mapped_column(ForeignKey("chats.id", ondelete="CASCADE"), index=True)
    message_id: Mapped[int] = mapped_column(ForeignKey("chat_messages.id", ondelete="CASCADE"))
    state: Mapped[RunState] = mapped_column(default=RunState.RUNNING)
    begun: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=lambda: datetime.now(UTC))
