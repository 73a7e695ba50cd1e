"""A kernel with undo and files over a fresh home, and a folder to act on."""

import hashlib
import os
import stat
import time
from pathlib import Path

import pytest

from takeback.context import Scope
from takeback.kernel import Kernel
from takeback_acts.files import sweeping
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule


class Bench:
    """A running kernel, a root, and callers."""

    def __init__(self, kernel: Kernel, root: Path) -> None:
        self.kernel = kernel
        self.root = root

    def agent(self, name="juno", *, session="s1", turn="t1", roots=None):
        granted = tuple(str(root) for root in (roots if roots is not None else [self.root]))
        return self.kernel.enter(f"mcp:agent:{name}", session=session, turn=turn, scope=Scope(roots=granted))

    def person(self, **more):
        return self.kernel.enter("cli:person", **more)

    async def undo(self, act, **more):
        return await self.person(**({"present": True} if more.get("force") else {})).call(
            "undo.run", id=act, **more
        )

    def uri(self, name=""):
        from takeback_acts.files.paths import resource

        return resource(os.fsencode(self.root / name if name else self.root))


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
async def bench(tmp_path, root):
    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        yield Bench(kernel, root)


@pytest.fixture
def snapshot():
    """Everything in a folder that must come back: names, kinds, modes, times, bytes, link targets."""
    return _snapshot


@pytest.fixture
def later(monkeypatch):
    """Lets a sweep take place so many seconds from now."""

    def move(seconds):
        now = time.time()
        monkeypatch.setattr(sweeping, "now", lambda: now + seconds)

    return move


def _snapshot(folder, *, times=True):
    found = {}
    for here, folders, files in os.walk(os.fsencode(folder)):
        for name in [*folders, *files]:
            path = os.path.join(here, name)
            about = os.lstat(path)
            what: list[object] = [stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode)]
            if stat.S_ISREG(about.st_mode):
                what += [hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()]
            if stat.S_ISLNK(about.st_mode):
                what += [os.readlink(path)]
            if times:
                what += [about.st_mtime_ns]
            found[os.path.relpath(path, os.fsencode(folder))] = what
    return found
