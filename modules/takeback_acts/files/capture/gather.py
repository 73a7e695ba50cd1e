"""Gathering: a folder that is not known yet becomes nodes, with everything in it taken into the store."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import NamedTuple

from takeback.errors import RefusedError
from takeback_acts.files.beneath import Home
from takeback_acts.files.capture.gitobjects import Objects
from takeback_acts.files.capture.intake import Intake, is_racy
from takeback_acts.files.capture.leftout import LeftOut
from takeback_acts.files.capture.marks import entries
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.repositories import Beneath, Repositories
from takeback_acts.files.capture.row import Row, Source
from takeback_acts.files.capture.tour import Tour

_DENIED = {errno.EACCES, errno.EPERM}


class Tools(NamedTuple):
    """What gathering works with. `device` is the root's: other mounts are not crossed."""

    intake: Intake
    left_out: LeftOut
    repositories: Repositories
    objects: Objects
    home: Home
    device: int


class Gather:
    """Fills nodes. `left` names the folders that were not entered, `spared` rows known from elsewhere.

    A file that was moved along with its folder has the very same mark as before, so its content is known.
    """

    def __init__(
        self, tools: Tools, tour: Tour[Node], spared: dict[tuple[int, ...], Row] | None = None
    ) -> None:
        self._tools = tools
        self._tour = tour
        self._spared = spared or {}
        self.left: list[Node] = []
        self._linked: set[int] = set()

    def adopt(self, git_dir: int, node: Node, objects: Node) -> None:
        """Marks a node `objects` of an open folder, if that is git's."""
        if not self._tools.objects.adopt(git_dir, node, objects):
            self._linked.add(objects.repository)

    def fill(self, top: Node) -> None:
        """Fills a node and makes all below it; what can't be entered is marked with the reason."""
        stack: list[tuple[Node, Beneath | None]] = [(top, None)]
        while stack:
            node, tracked = stack.pop()
            at = time.time_ns()
            try:
                folder = self._tour.to(node)
                found = os.fstat(folder)
                node.know(found, settled=not is_racy(found, at))
                tracked = self._tracked(folder, node, tracked)
                node.left = self._left(folder, node, tracked, found)
                if node.left == Source.NONE:
                    self._list(folder, node, tracked)
            except OSError as error:
                node.left = Source.DENIED if error.errno in _DENIED else Source.FAILED
                self._know_from_above(node)
            if node.left != Source.NONE:
                self.left.append(node)
                continue
            stack.extend(
                (child, tracked and tracked.below(name))
                for name, child in reversed(node.children.items())
                if self._entered(child, tracked)
            )

    def _list(self, folder: int, node: Node, tracked: Beneath | None) -> None:
        spared = self._spared
        if node.objects:
            return self._list_objects(folder, node)
        take = self._tools.intake.take
        if tracked is not None:
            node.repository = tracked.repository.number
        for name, found, is_folder in entries(folder, files=bool(spared)):
            if is_folder:
                node.children[name] = Node(node, name)
                continue
            row = spared.get(_as_spared(found)) if spared and found is not None else None
            if row is None:
                row = take(folder, name, found, tracked)
            if row is None:
                node.settled = False
            else:
                node.append(name, row)
        if b"objects" in node.children:
            self.adopt(folder, node, node.children[b"objects"])
        return None

    def _list_objects(self, folder: int, node: Node) -> None:
        copied = node.repository not in self._linked
        for name, found, is_folder in entries(folder):
            if is_folder:
                node.children[name] = Node(node, name)
            elif found is not None:
                row = self._spared.get(_as_spared(found))
                row = row or self._tools.objects.take(folder, node, name, found, copied=copied)
                if row is not None:
                    node.append(name, row)
                else:
                    node.settled = False

    def _entered(self, child: Node, tracked: Beneath | None) -> bool:
        if child.left == Source.NONE and self._tools.left_out.by_name(child.name):
            child.left = Source.NONE if tracked and tracked.tracks_in(child.name) else Source.LEFT_OUT
        if child.left == Source.NONE:
            return True
        self._know_from_above(child)
        self.left.append(child)
        return False

    def _know_from_above(self, node: Node) -> None:
        with contextlib.suppress(OSError):
            if node.parent is not None:
                above = self._tour.to(node.parent)
                node.know(os.stat(node.name, dir_fd=above, follow_symlinks=False), settled=True)

    def _tracked(self, folder: int, node: Node, tracked: Beneath | None) -> Beneath | None:
        try:
            os.stat(b".git", dir_fd=folder, follow_symlinks=False)
        except OSError:
            return tracked
        repository = self._tools.repositories.open(folder, node.path())
        return repository.beneath(b"") if repository is not None else None

    def _left(self, folder: int, node: Node, tracked: Beneath | None, found: os.stat_result) -> Source:
        if found.st_dev != self._tools.device:
            return Source.MOUNT
        try:
            self._tools.home.check(found, node.name)
        except RefusedError:
            return Source.HOME
        if node.parent is not None and tracked is None and self._tools.left_out.by_marker(folder, node.name):
            return Source.LEFT_OUT
        return Source.NONE


def _as_spared(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size, found.st_mode
