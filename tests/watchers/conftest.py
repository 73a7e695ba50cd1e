"""A kernel whose watchers follow the rules of a test, and ways to wait for what they do."""

import logging
from contextlib import asynccontextmanager

import anyio
import pytest

from takeback import Kernel
from takeback_acts.files.module import FilesModule
from takeback_acts.watchers.module import WatchersModule
from takeback_core.undo.module import UndoModule

_LONG = 30


class Room:
    """A running kernel, and what its watchers did and told since it was opened."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.said = []
        self._changed = anyio.Event()

    def stir(self):
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, ready):
        """Wait until `ready()` answers something true; it is asked whenever anything has happened."""
        with anyio.fail_after(_LONG):
            while not (found := ready()):
                await self._changed.wait()
        return found

    async def told(self, words, times=1):
        """Wait until the watchers' log has said this so many times."""
        return await self.until(lambda: sum(words in line for line in self.said) >= times)

    async def acts(self, tool="files.move"):
        """The watchers' acts as the person sees them, oldest first."""
        listed = (await self.me.undo.list(limit=500)).acts
        return [act for act in reversed(listed) if act.tool == tool]

    async def check(self, name):
        """A line of `takeback doctor`."""
        found = {check.name: check for check in await self.module.checks()}
        return found[name]

    @property
    def me(self):
        return self.kernel.enter("cli:person")

    @property
    def module(self):
        return self.kernel.supervisor.lives["watchers"].module


class _Ear(logging.Handler):
    def __init__(self, room):
        super().__init__(logging.INFO)
        self._room = room

    def emit(self, record):
        self._room.said.append(record.getMessage())
        self._room.stir()


@pytest.fixture
def inbox(tmp_path):
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def rule(inbox):
    """A rule that moves PDFs of the inbox into its folder `pdf`, but for what is given."""

    def make(**given):
        usual = {"name": "papers", "root": str(inbox), "pattern": "*.pdf", "action": "move", "target": "pdf/"}
        return usual | given

    return make


@pytest.fixture
def watching(tmp_path):
    """`async with watching(rule, ...) as room`: a file is complete as soon as it holds something."""

    @asynccontextmanager
    async def open_room(*rules, watchers=WatchersModule, **settings):
        sections = {"watchers": {"rules": list(rules), "settle_seconds": 0, **settings}}
        log = logging.getLogger("takeback.watchers")
        level = log.level
        log.setLevel(logging.INFO)
        modules = [UndoModule, FilesModule, watchers]
        kernel = Kernel(tmp_path / "home", settings=sections, modules=modules)
        room = Room(kernel)
        ear = _Ear(room)
        log.addHandler(ear)
        try:
            async with kernel:
                kernel.events.on("*", lambda seq, event: room.stir())
                yield room
                life = kernel.supervisor.lives["watchers"]
                assert (life.state, life.restarts) == ("running", 0), "a rule's trouble is not the module's"
        finally:
            log.removeHandler(ear)
            log.setLevel(level)

    return open_room
