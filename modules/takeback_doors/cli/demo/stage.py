"""Where the demo plays: a temporary folder and a daemon, of which nothing stays whatever happens."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from takeback_doors.cli.demo.person import Person

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stage() -> Iterator[tuple[Person, Path]]:
    """A person, and the empty folder of their project; it and their daemon are gone afterwards.

    A signal that would end the process comes as KeyboardInterrupt, so that there is an afterwards.
    """
    before = {ending: signal.signal(ending, signal.default_int_handler) for ending in _ENDINGS}
    here = Path(tempfile.mkdtemp(prefix="takeback-demo-")).resolve()
    work = here / "project"
    person = Person(here / "home", work)
    try:
        work.mkdir()
        yield person, work
    finally:
        # A second Ctrl-C must not interrupt the tidying, which takes a moment.
        for ending in _ENDINGS:
            signal.signal(ending, signal.SIG_IGN)
        person.leave()
        shutil.rmtree(here, ignore_errors=True)
        for ending, handler in before.items():
            signal.signal(ending, handler)
