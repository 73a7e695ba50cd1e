"""Objects of git as entries: copied like any file, or where that would cost too much, held by a hard link.

A link shares its bytes with the person's file, so whatever writes into that destroys both. What can be
copied is therefore copied.
"""

from __future__ import annotations

import os
import re
import stat

from takeback_acts.files.capture.gitkeep import FAN, OBJECT
from takeback_acts.files.capture.intake import Intake
from takeback_acts.files.capture.marks import mark
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.row import Row, Source
from takeback_acts.files.capture.way import FOLDER

# A repository is copied that has at most so many bytes and objects; later, each new file of so many bytes.
MOST = 32 << 20
_MANY = 10_000
_ENTRY = 28
_FANS = re.compile(FAN + rb"|pack")


class Objects:
    """Takes the files below `objects`, and the folder itself when it is found in a git folder."""

    def __init__(self, intake: Intake, repositories: Repositories) -> None:
        self._intake = intake
        self._repositories = repositories

    def adopt(self, git_dir: int, node: Node, objects: Node) -> bool:
        """Marks a node as the objects of an open git folder, if it is one; answers whether to copy them."""
        if not self._repositories.looks_like_git(git_dir):
            return True
        number = self._repositories.mirror(git_dir, node.path())
        objects.objects, objects.repository = True, -1 if number is None else number
        return _is_small(git_dir)

    def take(
        self, folder: int, node: Node, name: bytes, found: os.stat_result, *, copied: bool = True
    ) -> Row | None:
        """The row of a file in a node of objects; None when it vanished or became a folder."""
        if stat.S_ISREG(found.st_mode) and OBJECT.fullmatch(node.name + b"/" + name):
            linked = self._repositories.add(node.repository, folder, node.name, name)
            try:
                # A link more shows in the times of the file.
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
            if linked and not (copied and found.st_size <= MOST):
                return Row(mark(found), found.st_uid, found.st_gid, False, False, Source.KEPT)
        return self.copy(folder, name, found)

    def copy(self, folder: int, name: bytes, found: os.stat_result) -> Row | None:
        """The row of a file whose bytes are read whatever its size; None as above."""
        row = self._intake.take(folder, name, found)
        # Its further names are our own links, and git writes into none of them.
        return row and row._replace(linked=False)


def _is_small(git_dir: int) -> bool:
    """Whether the objects of an open git folder are few and small enough to be copied."""
    try:
        objects = os.open(b"objects", FOLDER, dir_fd=git_dir)
    except OSError:
        return False
    many = size = 0
    try:
        for fan in os.listdir(objects):
            if not _FANS.fullmatch(os.fsencode(fan)):
                continue
            for name, about in _sizes(objects, fan):
                many, size = many + _objects(name, about), size + about
                if many > _MANY or size > MOST:
                    return False
    except OSError:
        return False
    finally:
        os.close(objects)
    return True


def _objects(name: str, size: int) -> int:
    """How many objects a file stands for; an index has an entry for each in its pack."""
    if name.endswith(".idx"):
        return size // _ENTRY
    return 0 if name.startswith("pack-") else 1


def _sizes(objects: int, fan: str) -> list[tuple[str, int]]:
    folder = os.open(fan, FOLDER, dir_fd=objects)
    try:
        with os.scandir(folder) as listed:
            return [(entry.name, entry.stat(follow_symlinks=False).st_size) for entry in listed]
    finally:
        os.close(folder)
