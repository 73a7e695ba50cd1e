"""Shelves: the roots that are captured, each with its baseline in a folder of its own in takeback's home."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from takeback_acts.files.accounts import Account
from takeback_acts.files.beneath import Home
from takeback_acts.files.capture import gitprune, shelf
from takeback_acts.files.capture.capture import Capture
from takeback_acts.files.capture.engine import Options
from takeback_acts.files.capture.gitprune import Pruned
from takeback_acts.files.capture.node import walk
from takeback_acts.files.capture.row import Source
from takeback_acts.files.capture.shelf import ShelfError
from takeback_acts.files.contents import StoredContents
from takeback_acts.files.packs.store import BlobStore
from takeback_acts.files.rooted import Rooted

_MOST = 16
# A baseline is made again when it is asked for, so one that nobody has for long need not keep its blobs.
_UNUSED_SECONDS = 30 * 86_400


class Shelves:
    """Every root by its path; those that nobody has used for longest are let go when there are many."""

    def __init__(self, folder: Path, packs: BlobStore, home: Home, left_out: Sequence[str] | None) -> None:
        self._folder = folder
        self._packs = packs
        self._home = home
        self._options = Options() if left_out is None else Options(left_out=left_out)
        self._rooted: dict[bytes, Rooted] = {}
        self._closing: set[Rooted] = set()

    def rooted(self, root: bytes) -> Rooted:
        """The capture of a root."""
        if root not in self._rooted:
            place = self._folder / _name(root)
            contents = StoredContents(self._packs)
            capture = Capture(root, contents, place, self._home, self._options)
            self._rooted[root] = Rooted(root, capture, contents)
        return self._rooted[root]

    def require_room(self, account: Account) -> None:
        """Raises TakebackError `blobs.full`, `blobs.agent_full` where a limit has been passed already."""
        self._packs.vault.usage.charge(account.owner, 0, account.room)

    async def let_go(self) -> None:
        """Closes idle roots above the most that are held open."""
        idle = sorted((one for one in self._rooted.values() if one.idle), key=lambda one: one.used)
        for one in idle[: max(0, len(self._rooted) - _MOST)]:
            del self._rooted[one.path]
            self._closing.add(one)
            try:
                await one.close()
            finally:
                self._closing.discard(one)

    async def rest(self, seconds: float) -> None:
        """Lets go of the folders of roots that nobody has used for so long."""
        for one in list(self._rooted.values()):
            await one.rest(seconds)

    async def close(self) -> None:
        """Lets go of all."""
        for one in self._rooted.values():
            await one.close()
        self._rooted.clear()

    async def live(self) -> set[str]:
        """The digests that any baseline or open window names; a sweep must spare them."""
        found: set[str] = set()
        # One that is being closed is waited for: then what it held is on its shelf.
        for one in [*self._rooted.values(), *self._closing]:
            found |= await one.live()
        return found | await to_thread.run_sync(self._shelved)

    async def forget_unused(self, *, dry_run: bool) -> Pruned:
        """Removes baselines that nobody has used for long, and the kept git objects that no other needs."""
        held = {_name(root) for root, one in self._rooted.items() if one.used}
        pruned = await to_thread.run_sync(partial(self._remove_unused, held, dry_run=dry_run))
        for root in await to_thread.run_sync(self._roots):
            if root not in self._rooted:
                self.rooted(root).used = 0.0
        for one in list(self._rooted.values()):
            pruned += await one.prune(dry_run=dry_run)
        return pruned

    def _roots(self) -> list[bytes]:
        """The roots that have kept git objects."""
        found = []
        for path in self._folder.glob("*/git"):
            with contextlib.suppress(ShelfError):
                known = shelf.load(path.with_name("baseline"))
                if known is not None:
                    found.append(bytes.fromhex(known[1]["root"]))
        return found

    def _shelved(self) -> set[str]:
        found: set[str] = set()
        for path in self._folder.glob("*/baseline"):
            try:
                known = shelf.load(path)
            except (OSError, ShelfError):
                continue  # nobody can use it, so nothing is needed for it
            if known is not None:
                top = known[0].top
                found |= {name.hex() for node in walk(top) for name in node.digests(Source.BLOB)}
        return found

    def _remove_unused(self, held: set[str], *, dry_run: bool) -> Pruned:
        before, pruned = time.time() - _UNUSED_SECONDS, Pruned()
        for path in self._folder.glob("*/baseline"):
            if path.parent.name not in held and path.stat().st_mtime < before:
                pruned += gitprune.prune(path.parent / "git", {}, dry_run=dry_run)
                if not dry_run:
                    shutil.rmtree(path.parent)
        return pruned


def _name(root: bytes) -> str:
    return hashlib.sha256(root).hexdigest()[:32]
