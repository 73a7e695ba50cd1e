"""Capture: a root's baseline, kept up to date, and what changed in it from one look to the next."""

from __future__ import annotations

from pathlib import Path

from anyio import Lock, to_thread
from anyio.lowlevel import checkpoint_if_cancelled

from takeback_acts.files.beneath import Home
from takeback_acts.files.capture.changes import Changes, joined
from takeback_acts.files.capture.engine import Engine, Options
from takeback_acts.files.capture.intake import Contents


class Capture:
    """Captures one root. Looks follow one another; each advances the baseline to what it saw.

    `folder` is where the baseline and the kept git objects lie, on the root's file system if they are to be
    kept. Raises ConflictError `files.root_moved` when the root is not where it was, and what opening a
    folder raises.
    """

    def __init__(
        self, root: bytes, contents: Contents, folder: Path, home: Home, options: Options | None = None
    ) -> None:
        self.root = root
        self._contents = contents
        self._folder = folder
        self._home = home
        self._options = options or Options()
        self._engine: Engine | None = None
        # What a look found whose caller did not wait for it; the next one tells it.
        self._untold: Changes | None = None
        self._turn = Lock()

    async def baseline(self) -> Changes:
        """Makes the baseline, or brings it up to date; what changed since the last look is nobody's here."""
        return await self._look(scan=False)

    async def after(self, *, ending: bool = False) -> Changes:
        """What changed since the last look; `ending` as in `Engine.look`."""
        return await self._look(scan=False, ending=ending)

    async def scan(self) -> Changes:
        """What changed since the last look, found without the watcher."""
        return await self._look(scan=True)

    async def save(self) -> None:
        """Puts the baseline on the shelf; without, the next start scans and reads what changed since."""
        async with self._turn:
            if self._engine is not None:
                await to_thread.run_sync(self._engine.save)

    async def prune(self) -> None:
        """Lets go of kept git objects that no baseline of this root counts on any more; for now and then."""
        async with self._turn:
            if self._engine is not None:
                await to_thread.run_sync(self._engine.prune)

    async def close(self, *, save: bool = True) -> None:
        """Lets go of the root; saves the baseline, unless the one on the shelf is still needed."""
        async with self._turn:
            if self._engine is not None:
                engine, self._engine = self._engine, None
                await to_thread.run_sync(engine.close if save else engine.drop)

    def live(self) -> set[str]:
        """The digests in the store that the baseline names; a sweep must spare them."""
        return self._engine.live() if self._engine is not None else set()

    async def _look(self, *, scan: bool, ending: bool = False) -> Changes:
        async with self._turn:
            # A look that was begun is finished: a thread can't be taken back half way.
            await to_thread.run_sync(self._run, scan, ending)
            await checkpoint_if_cancelled()
            told, self._untold = self._untold, None
            assert told is not None
            return told

    def _run(self, scan: bool, ending: bool) -> None:
        changes = self._looked(scan, ending)
        self._untold = changes if self._untold is None else joined(self._untold, changes)

    def _looked(self, scan: bool, ending: bool) -> Changes:
        if self._engine is None:
            engine = Engine(self.root, self._contents, self._folder, self._home, self._options)
            try:
                changes = engine.begin()
            except BaseException:
                engine.drop()
                raise
            self._engine = engine
            return changes
        return self._engine.look(scan=scan, ending=ending)
