"""Rooted: one root under capture, and what each open window has seen change in it so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from takeback.errors import ConflictError
from takeback_acts.files import links
from takeback_acts.files.accounts import BASELINE, Account
from takeback_acts.files.capture.capture import Capture
from takeback_acts.files.capture.changes import REPACKED, Changes, Held, RefMove, pathed
from takeback_acts.files.capture.gitprune import Pruned
from takeback_acts.files.contents import StoredContents
from takeback_acts.files.paths import join, split
from takeback_acts.files.staging import is_temporary


@dataclass(slots=True)
class Found:
    """How a path was when a window began and how it is now; `shared` when another was open meanwhile.

    `of_git` says that it is among the objects of a git repository.
    """

    before: Held
    after: Held
    shared: bool = False
    of_git: bool = False

    @property
    def only_own(self) -> bool:
        """Whether all that differs is the owner of an entry, or the mode of a folder."""
        before, after = self.before, self.after
        if before.kind == after.kind == "dir":
            return True
        facts = ("kind", "mode", "sha256", "target", "reason")
        return before.kind != "absent" and all(getattr(before, f) == getattr(after, f) for f in facts)

    @property
    def stays(self) -> bool:
        """Whether it is left as it is, in a folder that stays.

        A new object does no harm, and what was made since may need it; git has all that was in a file of
        objects whose content it packed anew.
        """
        return self.before.reason == REPACKED or (self.of_git and self.before.kind == "absent")


@dataclass(slots=True)
class Seen:
    """What a window has seen so far, in paths from `/` down; `failed` says why the last look did.

    `twins` are resources of other names that files had. `moved_to` is where the root was moved to. `again`
    says that it was opened by an earlier process: what others did meanwhile is in it as well.
    """

    paths: dict[bytes, Found] = field(default_factory=dict)
    refs: list[RefMove] = field(default_factory=list)
    left_out: set[bytes] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    twins: dict[bytes, str] = field(default_factory=dict)
    failed: str = ""
    moved_to: bytes = b""
    again: bool = False


class Rooted:
    """A root's capture. A look is told to every window that is open; one at a time."""

    def __init__(self, path: bytes, capture: Capture, contents: StoredContents) -> None:
        self.path = path
        self.used = time.monotonic()
        self._capture = capture
        self._contents = contents
        self._seen: dict[str, Seen] = {}
        self._turn = anyio.Lock()
        self._unsaved = True

    @property
    def idle(self) -> bool:
        """Whether no window is open here."""
        return not self._seen

    def reopen(self, window: str) -> None:
        """Goes on with a window that was opened by an earlier process, whose baseline is on the shelf."""
        self._seen[window] = Seen(again=True)

    async def begin(self, window: str) -> Changes:
        """Opens a window on the root as it is now; the baseline is durable when this returns."""
        async with self._turn:
            self._contents.keep_for(BASELINE)
            changes = await self._first_look()
            # What others have seen so far is only known from the shelf if the process ends.
            if self.idle:
                await self._save()
            self._seen[window] = Seen()
            return changes

    async def look(self, account: Account) -> None:
        """Tells every open window what has changed; what is new in it is kept for this account."""
        async with self._turn:
            self._contents.keep_for(account)
            await self._look(ending=True)
            left_out = {join(self.path, inner) for inner in self._capture.left_out()}
            for seen in self._seen.values():
                seen.left_out |= left_out
                await to_thread.run_sync(self._look_at_links, seen)

    def seen(self, window: str) -> Seen:
        """What a window has seen until the last look."""
        return self._seen[window]

    def end(self, window: str) -> None:
        """Closes a window; what it has seen need not be kept any more."""
        self._seen.pop(window, None)

    async def save(self) -> None:
        """Puts the baseline on the shelf, unless a window is open that counts on what lies there."""
        async with self._turn:
            if self.idle:
                await self._save()

    async def prune(self, *, dry_run: bool) -> Pruned:
        """Lets go of kept git objects that no baseline counts on any more."""
        async with self._turn:
            return await self._capture.prune(dry_run=dry_run)

    async def rest(self, seconds: float) -> None:
        """Lets go of the root when nobody has asked for so long, so that its disk can be taken away.

        The next look begins with what is on the shelf.
        """
        async with self._turn:
            if self.idle and time.monotonic() - self.used >= seconds:
                unsaved, self._unsaved = self._unsaved, False
                await self._capture.close(save=unsaved)

    async def close(self) -> None:
        """Lets go of the root. With an open window the shelf stays as it was when that began."""
        async with self._turn:
            await self._capture.close(save=self.idle)

    async def live(self) -> set[str]:
        """The digests that the baseline or an open window names."""
        async with self._turn:
            found = await to_thread.run_sync(self._capture.live)
            for seen in self._seen.values():
                for one in seen.paths.values():
                    found |= {one.before.sha256, one.after.sha256}
            return found - {""}

    async def _first_look(self) -> Changes:
        try:
            return await self._look()
        except ConflictError as error:
            # Another folder lies there by now, and no window is open that saw the one before.
            if error.code != "files.root_moved" or not self.idle:
                raise
            await self._capture.close(save=False)
            return await self._look()

    async def _look(self, *, ending: bool = False) -> Changes:
        self.used = time.monotonic()
        changes = await self._capture.after(ending=ending, open_=bool(self._seen))
        self._unsaved = self._unsaved or bool(changes.paths or changes.refs)
        shared = len(self._seen) > 1
        for seen in self._seen.values():
            self._tell(seen, changes, shared)
        return changes

    def _look_at_links(self, seen: Seen) -> None:
        """Finds which of the changed files were one file, and which have names that nobody here knows."""
        before = {path: one.before.inode for path, one in seen.paths.items() if _is_linked(one.before)}
        if not before:
            return
        named = self._capture.named(set(before.values()))
        named = {inode: [join(self.path, inner) for inner in names] for inode, names in named.items()}
        there = {inode: [path for path in names if path not in seen.paths] for inode, names in named.items()}
        seen.twins = links.twins(before, there)
        for path, inode in before.items():
            if seen.paths[path].after.inode == inode:
                note = links.elsewhere(path, len(named.get(inode, ())))
                seen.notes += [note] if note and note not in seen.notes else []

    def _tell(self, seen: Seen, changes: Changes, shared: bool) -> None:
        for inner, change in pathed(changes.paths):
            path = join(self.path, inner) if inner else self.path
            if is_temporary(split(path)[1]):
                continue
            known = seen.paths.get(path)
            before = known.before if known is not None else change.before
            if _same(before, change.after):
                seen.paths.pop(path, None)
            else:
                shared = shared or (known is not None and known.shared)
                seen.paths[path] = Found(before, change.after, shared, change.folder.objects)
        seen.refs += changes.refs
        seen.moved_to = changes.moved_to or seen.moved_to
        seen.left_out |= {join(self.path, inner) for inner in changes.left_out}
        seen.notes += [note for note in changes.notes if note not in seen.notes]
        if changes.by == "built":
            seen.notes.append("baseline.built: what changed before that is not known")

    async def _save(self) -> None:
        if self._unsaved:
            await self._capture.save()
            self._unsaved = False


def _is_linked(held: Held) -> bool:
    return held.kind == "file" and held.linked and held.state() is not None


def _same(one: Held, other: Held) -> bool:
    facts = ("kind", "mode", "sha256", "target", "reason", "uid", "gid")
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts)
