"""An app that dies, by SIGKILL, when it has come to its n-th statement."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session

from takeback_acts.rows import SyncJournal
from tests.rows.library.models import Bullet, Certificate, Experience, Page, Skill


class Fuse:
    """Counts, and kills at a number."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.lit = False

    def burn(self, *_: Any) -> None:
        """One more statement, or one more half of a way to the server."""
        if self.lit:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, what: str, number: int) -> None:
    """Does one thing in one transaction. It ends by itself when that took fewer statements."""
    fuse = Fuse(number)
    engine = create_engine(url)
    if "sqlite" in url:

        @event.listens_for(engine, "connect")
        def traced(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.set_trace_callback(fuse.burn)

    else:
        import psycopg

        wait = psycopg.Connection.wait

        def waited(self: Any, *given: Any, **how: Any) -> Any:
            fuse.burn()
            made = wait(self, *given, **how)
            fuse.burn()
            return made

        psycopg.Connection.wait = waited  # type: ignore[method-assign]
    with Session(engine) as session:
        session.connection()
        fuse.lit = True
        DEEDS[what](SyncJournal(), session)
        session.commit()
        fuse.lit = False


def act(journal: SyncJournal, session: Session) -> None:
    """What an agent does at one message: a bit of everything."""
    with journal.act(session, group="g", point=2):
        session.add(Experience(id=2, title="Cook", bullets=[Bullet(id=5, text="Cooked")]))
        with journal.act(session, group="g", point=2, tool="inner"):
            session.delete(session.get_one(Certificate, 1))
        session.get_one(Skill, 1).title = "Rust"
    session.add(Skill(id=7, title="by hand"))


def rewind(journal: SyncJournal, session: Session) -> None:
    """A person goes back, and the app clears up after it."""
    journal.rewind(session, group="g", point=1)
    session.add(Skill(id=7, title="the app's own"))


DEEDS = {"act": act, "rewind": rewind}


def seed(session: Session) -> None:
    """What there is before."""
    session.add(Certificate(id=1, number="A", year=2000))
    session.add(Skill(id=1, title="Python"))
    session.flush()
    session.add_all([Page(id=number, certificate_id=1, text=f"{number}") for number in (1, 2)])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
