"""A small app's tables: a CV with what the journal has to cope with."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, ForeignKey, LargeBinary, Numeric, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """The app's tables."""


class Skill(Base):
    """Something that somebody can do."""

    __tablename__ = "skill"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    level: Mapped[int | None]
    rank: Mapped[int] = mapped_column(default=0, server_default="0")


class Experience(Base):
    """A job, with what was done there."""

    __tablename__ = "experience"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    bullets: Mapped[list[Bullet]] = relationship(
        back_populates="experience", cascade="all, delete-orphan", order_by="Bullet.id", lazy="selectin"
    )


class Bullet(Base):
    """One line of a job."""

    __tablename__ = "bullet"

    id: Mapped[int] = mapped_column(primary_key=True)
    experience_id: Mapped[int] = mapped_column(ForeignKey("experience.id"))
    text: Mapped[str]
    experience: Mapped[Experience] = relationship(back_populates="bullets")


class Certificate(Base):
    """A paper, with its pages, which the database deletes along with it."""

    __tablename__ = "certificate"
    __table_args__ = (UniqueConstraint("number"), CheckConstraint("year > 1900", name="certificate_year"))

    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[str]
    year: Mapped[int]
    scan: Mapped[bytes | None] = mapped_column(LargeBinary)
    price: Mapped[float | None] = mapped_column(Numeric(10, 2, asdecimal=False))


class Page(Base):
    """A page of a certificate."""

    __tablename__ = "page"

    id: Mapped[int] = mapped_column(primary_key=True)
    certificate_id: Mapped[int] = mapped_column(ForeignKey("certificate.id", ondelete="CASCADE"))
    text: Mapped[str]


class Account(Base):
    """A counter, and what an app keeps beside it."""

    __tablename__ = "account"

    id: Mapped[int] = mapped_column(primary_key=True)
    balance: Mapped[int]
    amount: Mapped[int]
    currency: Mapped[str]
    updated_at: Mapped[str]
