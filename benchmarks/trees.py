"""What a command changed in a tree: against git's shadow repository, cold and warm, and against tree size.

Takes five minutes, most of them to make the trees, so it is run by name alone: `python -m benchmarks trees`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

from benchmarks.measure import Figure, compare
from takeback_acts.files.beneath import Home
from takeback_acts.files.capture.capture import Capture
from takeback_acts.files.capture.engine import Options
from takeback_acts.files.capture.gitkeep import environment

_FILES = int(os.environ.get("BENCH_TREE_FILES", "100000"))
_GROWN = int(os.environ.get("BENCH_GROWN_FILES", "500000"))
_FEW = 1_000
_IN_A_FOLDER = 100
_BYTES = 2_600
_CHANGED = 10
_ROUNDS = 7


async def figures() -> list[Figure]:
    """First baselines, what ten changed files cost with and without the watcher, and growth."""
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        tree = place / "tree"
        _make(tree, _FILES, _BYTES)
        cold, size = _shadow_cold(tree, place / "shadow")
        plain, _ = await _first(tree, place / "plain")
        found += await _warm(tree, place)
        _commit(tree, place)
        clean, disk = await _first(tree, place / "clean")
        again, _ = _shadow_cold(tree, place / "again")
        cold = (cold + again) / 2
        against = "cold add -A + write-tree"
        found.append(Figure(f"first baseline of {_FILES} files, no git", plain, cold, against, 0.25))
        found.append(Figure(f"first baseline of {_FILES} files, clean work tree", clean, cold, against, 0.20))
        found.append(Disk("disk of that baseline", disk, size, "the shadow repository", 0.05))
        shutil.rmtree(tree)
        found.append(await _growth(place))
    return found


class Disk(Figure):
    """A figure in bytes."""

    def line(self) -> str:
        """The figure as one line of text."""
        verdict = "ok" if self.kept else "MISSED"
        return (
            f"{verdict:6} {self.ratio:8.2f}x (<= {self.limit:g})  {self.what}: {self.ours / 1e6:,.1f} MB;"
            f" {self.against} {self.other / 1e6:,.1f} MB"
        )


class Pack:
    """The least that a store of blobs can be: bytes appended to one file, and one sync for all of them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=1 << 20)
        self._known: set[str] = set()

    def put(self, data: bytes) -> str:
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._known:
            self._known.add(sha256)
            self._file.write(data)
        return sha256

    def put_file(self, handle: int, size: int) -> str:
        return self.put(os.read(handle, size + 1))

    def get(self, sha256: str) -> bytes:
        raise NotImplementedError

    def sync(self) -> None:
        self._file.flush()
        os.fdatasync(self._file.fileno())


async def _warm(tree: Path, place: Path) -> list[Figure]:
    """Before and after a command that changed ten files."""
    numbers = count()
    watching = _capture(tree, place / "watching")
    scanning = _capture(tree, place / "scanning", watch=False)
    shadow = place / "shadow"

    async def ours(capture: Capture) -> float:
        taken = 0.0
        for change in (False, True):
            if change:
                _change(tree, next(numbers))
            started = time.perf_counter()
            changes = await (capture.after() if change else capture.baseline())
            taken += time.perf_counter() - started
            assert not change or len(changes.paths) == _CHANGED
        return taken

    async def watch() -> float:
        await watching.baseline()
        return await ours(watching)

    async def scan() -> float:
        await scanning.baseline()
        return await ours(scanning)

    async def git() -> float:
        _snapshot(tree, shadow)
        started = time.perf_counter()
        _snapshot(tree, shadow)
        taken = time.perf_counter() - started
        _change(tree, next(numbers))
        started = time.perf_counter()
        _snapshot(tree, shadow)
        return taken + time.perf_counter() - started

    try:
        await watching.baseline()
        await scanning.baseline()
        taken = await compare({"watch": watch, "scan": scan, "git": git}, rounds=_ROUNDS)
    finally:
        await watching.close()
        await scanning.close()
    what, against = f"{_CHANGED} of {_FILES} changed, before and after", "two warm add -A + write-tree"
    return [
        Figure(f"{what}, watcher", taken["watch"], taken["git"], against, 0.03),
        Figure(f"{what}, scans", taken["scan"], taken["git"], against, 0.60),
    ]


async def _growth(place: Path) -> Figure:
    """One file changed by an act in a small root and in a large one."""
    roots = {name: place / name for name in ("few", "grown")}
    _make(roots["few"], _FEW, 1)
    _make(roots["grown"], _GROWN, 1)
    captures = {name: _capture(root, place / f"{name}-state") for name, root in roots.items()}
    numbers = count()

    def sample(name: str):
        async def one() -> float:
            started = time.perf_counter()
            for _ in range(50):
                (roots[name] / "0" / "0").write_text(f"act {next(numbers)}")
                assert len((await captures[name].after()).paths) == 1
            return (time.perf_counter() - started) / 50

        return one

    for capture in captures.values():
        await capture.baseline()
    taken = await compare({name: sample(name) for name in roots}, rounds=_ROUNDS)
    for capture in captures.values():
        await capture.close()
    what = f"one file changed in a root of {_GROWN} files, watcher"
    return Figure(what, taken["grown"], taken["few"], f"in a root of {_FEW}", 1.5)


async def _first(tree: Path, state: Path) -> tuple[float, int]:
    """Seconds and bytes of disk that a first baseline takes."""
    capture = _capture(tree, state, watch=False)
    started = time.perf_counter()
    await capture.baseline()
    taken = time.perf_counter() - started
    await capture.close()
    return taken, _disk(state)


def _capture(tree: Path, state: Path, *, watch: bool = True) -> Capture:
    state.mkdir()
    # No scan at intervals within the run: what it costs is a row of its own.
    options = Options(watch=watch, scan_every=1e9)
    return Capture(os.fsencode(tree), Pack(state / "pack"), state, Home([]), options)


def _make(tree: Path, files: int, size: int) -> None:
    for number in range(files):
        folder = tree / str(number // _IN_A_FOLDER)
        if number % _IN_A_FOLDER == 0:
            folder.mkdir(parents=True)
        data = (f"{number} ".encode() * (size // 2 + 1))[:size]
        (folder / str(number % _IN_A_FOLDER)).write_bytes(data)


def _change(tree: Path, number: int) -> None:
    for at in range(_CHANGED):
        (tree / str((number * _CHANGED + at) % (_FILES // _IN_A_FOLDER)) / "7").write_text(f"{number} {at}")


def _shadow_cold(tree: Path, shadow: Path) -> tuple[float, int]:
    _git("init", "-q", "--bare", os.fspath(shadow))
    started = time.perf_counter()
    _snapshot(tree, shadow)
    return time.perf_counter() - started, _disk(shadow)


def _snapshot(tree: Path, shadow: Path) -> None:
    where = (f"--git-dir={shadow}", f"--work-tree={tree}")
    _git(*where, "add", "-A", cwd=tree)
    _git(*where, "write-tree", cwd=tree)


def _commit(tree: Path, place: Path) -> None:
    """Makes the tree a clean work tree, its objects in one pack, as after a clone."""
    _git("init", "-q", "-b", "main", os.fspath(tree))
    where = ("-C", os.fspath(tree))
    with (place / "import").open("wb") as stream:
        stream.write(b"commit refs/heads/main\ncommitter t <t@example.org> 0 +0000\ndata 1\nx\n")
        for path in sorted(tree.glob("[0-9]*/*")):
            data = path.read_bytes()
            name = path.relative_to(tree).as_posix()
            stream.write(f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n")
    with (place / "import").open("rb") as stream:
        subprocess.run(["git", *where, "fast-import", "--quiet"], stdin=stream, check=True, env=environment())
    _git(*where, "read-tree", "HEAD")
    _git(*where, "update-index", "-q", "--refresh")


def _git(*words: str, cwd: Path | None = None) -> None:
    subprocess.run(["git", *words], check=True, env=environment(), cwd=cwd, stdout=subprocess.DEVNULL)


def _disk(folder: Path) -> int:
    """The bytes on disk that are there for this folder alone: links to what others have cost nothing."""
    paths = (os.lstat(path) for path in folder.rglob("*"))
    own = (found for found in paths if found.st_nlink == 1 or stat.S_ISDIR(found.st_mode))
    return sum(found.st_blocks * 512 for found in own)
