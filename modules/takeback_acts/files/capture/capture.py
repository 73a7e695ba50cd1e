"""Capture: a root's baseline, kept up to date, and what changed in it from one look to the next."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from anyio import Lock, to_thread
from anyio.lowlevel import checkpoint_if_cancelled

from takeback.errors import ConflictError, NotFoundError, RefusedError
from takeback_acts.files import beneath, failures
from takeback_acts.files.beneath import Home
from takeback_acts.files.capture import gitprune, uprooted
from takeback_acts.files.capture.bringing import Bringing
from takeback_acts.files.capture.changes import NOTHING, Changes, Held, held, joined
from takeback_acts.files.capture.engine import Engine, Options
from takeback_acts.files.capture.gitprune import Pruned
from takeback_acts.files.capture.intake import Contents, Intake
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.uprooted import Uprooted

_NO_FOLDER = {"files.absent", "files.not_folder", "files.link"}


class Capture:
    """Captures one root. Looks follow one another; each advances the baseline to what it saw.

    `folder` is where the baseline and the kept git objects lie, on the root's file system if they are to be
    kept. Raises ConflictError `files.root_moved` when the root is not where it was and nobody knew it
    before, or its disk is away, and what opening a folder raises.
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
        self._old: Uprooted | None = None
        # What a look found whose caller did not wait for it; the next one tells it.
        self._untold: Changes | None = None
        self._turn = Lock()

    async def baseline(self) -> Changes:
        """Makes the baseline, or brings it up to date; what changed since the last look is nobody's here."""
        return await self._look(scan=False)

    async def after(self, *, ending: bool = False, open_: bool = False) -> Changes:
        """What changed since the last look; `ending` as in `Engine.look`.

        With a window `open_` that has seen the root, one that was removed or moved away is a change too.
        """
        return await self._look(scan=False, ending=ending, open_=open_)

    async def scan(self) -> Changes:
        """What changed since the last look, found without the watcher."""
        return await self._look(scan=True)

    async def save(self) -> None:
        """Puts the baseline on the shelf; without, the next start scans and reads what changed since."""
        async with self._turn:
            if self._engine is not None:
                await to_thread.run_sync(self._engine.save)

    async def prune(self, *, dry_run: bool = False) -> Pruned:
        """Lets go of kept git objects that no baseline of this root counts on any more; for now and then."""
        async with self._turn:
            return await to_thread.run_sync(partial(self._prune, dry_run=dry_run))

    def _prune(self, *, dry_run: bool) -> Pruned:
        if self._engine is not None:
            return self._engine.prune(dry_run=dry_run)
        # What is known of a root that is away by now may be all that there is of it.
        if self._old is not None:
            return Pruned()
        with failures.reported(os.fsencode(self._folder)):
            wanted = gitprune.needed(gitprune.shelved(self._folder))
            return gitprune.prune(self._folder / "git", wanted, dry_run=dry_run)

    async def close(self, *, save: bool = True) -> None:
        """Lets go of the root; saves the baseline, unless the one on the shelf is still needed."""
        async with self._turn:
            self._old = None
            if self._engine is not None:
                engine, self._engine = self._engine, None
                await to_thread.run_sync(engine.close if save else engine.drop)

    def live(self) -> set[str]:
        """The digests in the store that the baseline names; a sweep must spare them."""
        return self._engine.live() if self._engine is not None else set()

    def left_out(self) -> list[bytes]:
        """The folders that can be made again and are not captured, whatever changes in them."""
        return self._engine.left_out() if self._engine is not None else []

    def named(self, inodes: set[int]) -> dict[int, list[bytes]]:
        """The names that files with these inodes have in the root. Blocks."""
        return self._engine.named(inodes) if self._engine is not None else {}

    async def _look(self, *, scan: bool, ending: bool = False, open_: bool = False) -> Changes:
        async with self._turn:
            # A look that was begun is finished: a thread can't be taken back half way.
            await to_thread.run_sync(self._run, scan, ending, open_)
            await checkpoint_if_cancelled()
            told, self._untold = self._untold, None
            assert told is not None
            return told

    def _run(self, scan: bool, ending: bool, open_: bool) -> None:
        changes = self._looked(scan, ending, open_)
        self._untold = changes if self._untold is None else joined(self._untold, changes)

    def _looked(self, scan: bool, ending: bool, open_: bool) -> Changes:
        if self._engine is not None:
            try:
                return self._engine.look(scan=scan, ending=ending)
            except ConflictError as error:
                if error.code != "files.root_moved" or not open_:
                    raise
                self._old = self._uprooted(self._engine, error)
            self._engine.drop()
            self._engine = None
        elif not open_:
            self._old = None
        elif self._old is None:
            self._old = self._shelved()
        return self._begin() if self._old is None else self._begin_anew(self._old)

    def _begin(self) -> Changes:
        engine = self._opened(Repositories(self._folder / "git"))
        try:
            changes = engine.begin()
        except BaseException:
            engine.drop()
            raise
        self._engine = engine
        return changes

    def _begin_anew(self, old: Uprooted) -> Changes:
        """All that differs between a root that is gone and what lies at its path now, if anything."""
        try:
            engine = self._opened(old.repositories)
        except (ConflictError, NotFoundError, RefusedError) as error:
            if error.code not in _NO_FOLDER:
                raise
            self._require_disk(old)
            changes = Changes("scan")
            changes.paths = old.changes(None, self._entry(), self._bringing(old))
            self._old = Uprooted(None, old.repositories, old.device, seen_to_go=True)
        else:
            try:
                changes = self._compared(engine, old)
            except BaseException:
                engine.drop()
                raise
            self._engine, self._old = engine, None
        self._contents.sync()
        changes.moved_to = old.moved_to
        return changes

    def _compared(self, engine: Engine, old: Uprooted) -> Changes:
        if engine.device != old.device:
            raise failures.unreachable(self.root)
        changes = engine.begin_anew()
        changes.by = "scan"
        changes.paths = old.changes(engine.tree, NOTHING, engine.bringing)
        return changes

    def _opened(self, repositories: Repositories) -> Engine:
        return Engine(self.root, self._contents, self._folder, self._home, self._options, repositories)

    def _uprooted(self, engine: Engine, error: ConflictError) -> Uprooted:
        found = engine.uprooted()
        if found is None:
            raise error
        return found

    def _shelved(self) -> Uprooted | None:
        """What a window that an earlier process opened has seen of a root that is another one now."""
        try:
            handle = beneath.open_folder(self.root, self._home)
        except (ConflictError, NotFoundError, RefusedError):
            here = None
        else:
            found = os.fstat(handle)
            os.close(handle)
            here = [found.st_dev, found.st_ino]
        return uprooted.shelved(self._folder, Repositories(self._folder / "git"), here)

    def _require_disk(self, old: Uprooted) -> None:
        """Raises TakebackError `files.unreachable` where it can't be told from a disk that is away."""
        if old.seen_to_go:
            return
        _, about = beneath.leading(self.root)[-1]
        if about.st_dev != old.device:
            raise failures.unreachable(self.root)

    def _entry(self) -> Held:
        """What lies at the root's path instead of a folder."""
        try:
            with beneath.spot(self.root, self._home) as spot:
                found = spot.look()
                if found is None:
                    return NOTHING
                return held(Intake(self._contents).take(spot.folder, spot.name, found))
        except (ConflictError, NotFoundError, RefusedError):
            return NOTHING

    def _bringing(self, old: Uprooted) -> Bringing:
        return Bringing(self._contents, old.repositories, keeping=True)
