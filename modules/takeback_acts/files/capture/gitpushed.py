"""Pushed: what others may have of a repository, so that moving a reference back would part it from theirs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from takeback_acts.files import paths
from takeback_acts.files.capture import gitrefs
from takeback_acts.files.capture.gitkeep import Keep, environment

_PACKED = "packed-refs"
_HEADS, _TAGS, _REMOTES = "refs/heads/", "refs/tags/", "refs/remotes/"
_SHA1 = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Moved(NamedTuple):
    """Where a command moved a reference of the repository with this git folder; empty is absent."""

    git: bytes
    ref: str
    old: str
    new: str


@dataclass
class Pushed:
    """The references that an act would move back. Blocks; each repository is asked once."""

    refs: Sequence[Moved]
    _found: dict[bytes, set[str]] = field(default_factory=dict)

    def holds(self, path: bytes) -> bool:
        """Whether a file has a reference in it that would be moved back though it was pushed."""
        for git in {one.git for one in self.refs if paths.beneath(path, one.git)}:
            name = os.fsdecode(path[len(git) + 1 :])
            if name == _PACKED:
                return bool(self._in(git))
            # A folder of branches that came with the act goes with all it holds.
            inner = {one.ref for one in self.refs if one.git == git and f"{one.ref}/".startswith(f"{name}/")}
            if inner:
                return not inner.isdisjoint(self._in(git))
        return False

    def _in(self, git: bytes) -> set[str]:
        if git not in self._found:
            self._found[git] = _pushed(git, [one for one in self.refs if one.git == git])
        return self._found[git]


def _pushed(git: bytes, moves: Sequence[Moved]) -> set[str]:
    """Which of the references were pushed."""
    try:
        folder = os.open(git, _FOLDER)
    except OSError:
        return set()
    try:
        refs = gitrefs.read(folder, folder)
    finally:
        os.close(folder)
    remote = {at for name, at in refs.items() if name.startswith(_REMOTES) and not at.startswith("ref:")}
    if not remote:
        return set()
    with tempfile.TemporaryDirectory() as place:
        history = _History(git, Path(place))
        return {one.ref for one in moves if one.new and _is_pushed(history, one, moves, refs, remote)}


def _is_pushed(
    history: _History, move: Moved, moves: Sequence[Moved], refs: dict[str, str], remote: set[str]
) -> bool:
    if move.ref.startswith(_REMOTES):
        # It tells what the remote has, and is all that does.
        return True
    if move.ref.startswith(_TAGS):
        # No reference tells which tags a remote has.
        return history.is_on(move.new, remote)
    if not move.ref.startswith(_HEADS):
        return False
    if move.old:
        return history.shares(move.new, [move.old], remote)
    # What other branches have is not lost with a new one.
    others = [at for name, at in refs.items() if name.startswith(_HEADS) and name != move.ref]
    return history.shares(move.new, [*others, *(one.old for one in moves if one.old)], remote)


class _History:
    """The commits of a repository, read by a git that knows nothing of the repository's configuration."""

    def __init__(self, git: bytes, place: Path) -> None:
        self._environment = {
            **environment(),
            "GIT_OBJECT_DIRECTORY": os.fsdecode(paths.join(git, b"objects")),
            "GIT_SHALLOW_FILE": os.fsdecode(paths.join(git, b"shallow")),
        }
        self._place = place
        self._made = False

    def is_on(self, one: str, remote: Collection[str]) -> bool:
        """Whether a remote has a commit."""
        return one in remote or self._count(one, remote) == 0

    def shares(self, one: str, without: Collection[str], remote: Collection[str]) -> bool:
        """Whether a remote has any commit that is reached from one but not from others."""
        whole, local = self._count(one, without), self._count(one, [*without, *remote])
        # Without history, equal names are all there is to go by.
        return one in remote if whole is None or local is None else whole != local

    def _count(self, one: str, without: Collection[str]) -> int | None:
        """How many commits are reached from one but not from others; None where that can't be told."""
        self._make(32 if len(one) > _SHA1 else 20)
        asked = "".join([f"{one}\n", *(f"^{other}\n" for other in without)])
        command = ["git", f"--git-dir={self._place}", "rev-list", "--count", "--ignore-missing", "--stdin"]
        try:
            ran = subprocess.run(
                command,
                input=asked.encode(),
                capture_output=True,
                env=self._environment,
                cwd="/",
                check=False,
            )
        except OSError:
            return None
        return int(ran.stdout) if ran.returncode == 0 else None

    def _make(self, length: int) -> None:
        if not self._made:
            Keep(self._place).prepare(length)
            self._made = True
