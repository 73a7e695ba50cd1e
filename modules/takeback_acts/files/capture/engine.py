"""The engine: a root held open, its baseline, and the two ways to find out what differs from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from takeback.errors import ConflictError, TakebackError
from takeback_acts.files import beneath, failures, mounts
from takeback_acts.files.beneath import Home
from takeback_acts.files.capture import gitprune, leftout, shelf, uprooted
from takeback_acts.files.capture.bringing import Bringing
from takeback_acts.files.capture.changes import Changes
from takeback_acts.files.capture.gather import Gather, Tools
from takeback_acts.files.capture.gitobjects import Objects
from takeback_acts.files.capture.gitprune import Pruned
from takeback_acts.files.capture.intake import Contents, Intake
from takeback_acts.files.capture.leftout import LeftOut
from takeback_acts.files.capture.look import Look
from takeback_acts.files.capture.node import Node, walk
from takeback_acts.files.capture.refmoves import RefMoves
from takeback_acts.files.capture.repacking import Repacking
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.row import Source
from takeback_acts.files.capture.senses import Senses
from takeback_acts.files.capture.shelf import ShelfError
from takeback_acts.files.capture.tour import Tour
from takeback_acts.files.capture.tree import Tree
from takeback_acts.files.capture.uprooted import Uprooted
from takeback_acts.files.paths import shown


@dataclass(frozen=True, slots=True)
class Options:
    """How a root is captured.

    `left_out` are the rules of LeftOut. `watch` off means a scan at every look. A scan is made at least
    every `scan_every` seconds, by a crew from `crew_from` entries on.
    """

    left_out: Sequence[str] = leftout.DEFAULTS
    watch: bool = True
    scan_every: float = 600.0
    crew_from: int = 5_000


class Engine:
    """A root that is held open, with its tree. Calls block, one at a time."""

    def __init__(
        self,
        root: bytes,
        contents: Contents,
        folder: Path,
        home: Home,
        options: Options,
        repositories: Repositories,
    ) -> None:
        self._path, self._home = root, home
        self._contents = contents
        self._folder = folder
        self._root = beneath.open_folder(root, home)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._repositories = repositories
        device = os.fstat(self._root).st_dev
        rules = LeftOut(options.left_out)
        intake = Intake(contents)
        objects = Objects(intake, self._repositories)
        self._tools = Tools(intake, rules, self._repositories, objects, home, device)
        self.tree = Tree(Node(None, b""))
        self.senses = Senses(
            self._root,
            device,
            rules,
            watch=options.watch,
            scan_every=options.scan_every,
            crew_from=options.crew_from,
        )
        self._notes: list[str] = []

    def begin(self) -> Changes:
        """Takes the baseline from the shelf and scans, or builds it."""
        with failures.reported(self._path):
            known = self._shelved()
            self.senses.see(known)
            if known is not None:
                self.tree = known
                return self.look(scan=True)
            changes = self._build()
            self.save()
            return changes

    def begin_anew(self) -> Changes:
        """Builds the baseline; what is on the shelf stays there."""
        with failures.reported(self._path):
            self.senses.see(None)
            return self._build()

    def uprooted(self) -> Uprooted | None:
        """What is known of a root that is not where it was; None when its whole disk may be away."""
        moved_to = uprooted.where(self._root)
        if moved_to is None or moved_to == self._path:
            return None
        return Uprooted(self.tree, self._repositories, self.device, moved_to, seen_to_go=True)

    @property
    def device(self) -> int:
        """The number of the root's file system."""
        return os.fstat(self._root).st_dev

    def look(self, *, scan: bool, ending: bool = False) -> Changes:
        """What differs from the baseline, which is advanced.

        At the end of a window, what lies there now is only named where it can't be kept: that the store is
        full must not cost what it has of before.
        """
        try:
            return self._look(scan)
        except TakebackError as error:
            if not ending or not error.code.startswith("blobs."):
                raise
        self._tools.intake.keeping = False
        try:
            return self._look(scan=True)
        finally:
            self._tools.intake.keeping = True

    def _look(self, scan: bool) -> Changes:
        self._check_root()
        look = Look(self.tree, self._root, self._tools)
        try:
            with failures.reported(self._path):
                changes = Changes(self.senses.ask(look, self.tree, scan=scan))
                look.examine()
                repacking = Repacking(look.tour, self._repositories, self._contents)
                changes.paths = look.changes(self.bringing, repacking)
                moves = RefMoves(self._repositories, look)
                changes.refs = moves.found()
                self._contents.sync()
            self._check_root()
            look.apply()
            moves.apply()
            self.senses.enter(look.opened)
        except BaseException:
            self.senses.spent()
            self._repositories.fresh.clear()
            raise
        finally:
            look.close()
        changes.left_out = sorted(node.path() for node in look.left if node.left == Source.LEFT_OUT)
        changes.notes = [*look.inquiry.notes, *self._said()]
        return changes

    def save(self) -> None:
        """Puts the baseline on the shelf."""
        meta = {
            "root": self._path.hex(),
            "identity": _identity(self._root),
            "rules": self._tools.left_out.rules,
            "keeps": [[*key, number] for key, number in self._repositories.numbers.items()],
            "refs": {path.hex(): refs for path, refs in self._repositories.refs.items()},
        }
        with failures.reported(os.fsencode(self._folder)):
            shelf.save(self._folder / "baseline", self.tree, meta)

    def prune(self, *, dry_run: bool) -> Pruned:
        """Lets go of the kept git objects that neither this baseline nor the one on the shelf counts on."""
        with failures.reported(os.fsencode(self._folder)):
            wanted = gitprune.needed([self.tree, *gitprune.shelved(self._folder)])
            return self._repositories.prune(wanted, dry_run=dry_run)

    def close(self) -> None:
        """Saves, and ends."""
        try:
            self.save()
        finally:
            self.drop()

    def drop(self) -> None:
        """Ends without saving."""
        self.senses.close()
        os.close(self._root)

    def live(self) -> set[str]:
        """The digests of blobs in the tree."""
        return {digest.hex() for node in walk(self.tree.top) for digest in node.digests(Source.BLOB)}

    def _shelved(self) -> Tree | None:
        try:
            found = shelf.load(self._folder / "baseline")
        except ShelfError as error:
            self._notes.append(f"baseline.rebuilt: {error}")
            return None
        if found is None:
            return None
        tree, meta = found
        if meta["identity"] != _identity(self._root) or tuple(meta["rules"]) != self._tools.left_out.rules:
            self._notes.append("baseline.rebuilt: the root or the rules are others")
            return None
        self._repositories.recall(meta)
        return tree

    def _build(self) -> Changes:
        top = Node(None, b"")
        tour = Tour(self._root, top)
        gather = Gather(self._tools, tour)
        try:
            gather.fill(top)
        finally:
            tour.close()
        if top.left != Source.NONE:
            raise TakebackError(
                "files.io", f"{shown(self._path)} could not be read", "Look at its permissions."
            )
        self._contents.sync()
        self._check_root()
        self.tree = Tree(top)
        self._repositories.settle({})
        self.senses.built()
        left_out = sorted(node.path() for node in gather.left if node.left == Source.LEFT_OUT)
        return Changes("built", left_out=left_out, notes=self._said())

    def named(self, inodes: set[int]) -> dict[int, list[bytes]]:
        """The names that files with these inodes have."""
        found: dict[int, list[bytes]] = {}
        for node in walk(self.tree.top):
            for name in node.of_inodes(inodes):
                row = node.row(name)
                if row is not None:
                    above = node.path()
                    found.setdefault(row.mark[1], []).append(above + b"/" + name if above else name)
        return found

    def left_out(self) -> list[bytes]:
        """The folders that can be made again and are not captured."""
        return sorted(node.path() for node in self.tree.left if node.left == Source.LEFT_OUT)

    @property
    def bringing(self) -> Bringing:
        """What brings contents out of kept git objects into the store."""
        return Bringing(self._contents, self._repositories, keeping=self._tools.intake.keeping)

    def _check_root(self) -> None:
        try:
            # A root that somebody has shut can't be opened, and yet is where it was.
            with beneath.spot(self._path, self._home) as spot:
                found = spot.look()
        except TakebackError as error:
            raise _moved(self._path) from error
        if found is None or [found.st_dev, found.st_ino] != _identity(self._root):
            raise _moved(self._path)

    def _said(self) -> list[str]:
        notes = [
            f"not captured: {shown(point)} is another file system" for point in mounts.foreign(self._path)
        ]
        notes += [*self._notes, *self.senses.said(), *self._repositories.notes]
        if self._tools.intake.unkept:
            notes.append(f"unkept: {self._tools.intake.unkept} files, for there is no room to keep them")
            self.senses.short, self._tools.intake.unkept = True, 0
        self._notes.clear()
        self._repositories.notes.clear()
        return notes


def _identity(handle: int) -> list[int]:
    found = os.fstat(handle)
    return [found.st_dev, found.st_ino]


def _moved(path: bytes) -> ConflictError:
    return ConflictError(
        "files.root_moved",
        f"{shown(path)} is not the folder any more that it was",
        "Move it back, or grant the folder that is there now.",
    )
