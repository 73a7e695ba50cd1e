"""Kept objects: hard links to a repository's packs and loose objects, which git never rewrites in place.

They live in a bare repository of our own, so that `git gc` and `rm -rf .git` take nothing away, and so that
git reads them under our configuration and never under that of the person's repository.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from takeback.durable import sync
from takeback_acts.files.capture.way import FOLDER

FAN = rb"[0-9a-f]{2}"
_LOOSE = re.compile(rb"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK = re.compile(rb"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.(?:pack|idx|rev)")
# What is kept, below `objects`.
OBJECT = re.compile(FAN + rb"/(?:" + _LOOSE.pattern + rb")|pack/(?:" + _PACK.pattern + rb")")
_FAN = [b"%02x" % number for number in range(256)]
_DEEPEST = 5
# So many names fit the pipe to git, so that neither side waits for the other.
_AT_ONCE = 900


class LinkError(OSError):
    """Another file system, or somebody else's files: no hard link can be made."""


class Keep:
    """One of our own bare repositories, holding another's objects. Calls block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: set[bytes] = set()

    def prepare(self, length: int) -> None:
        """Makes the repository for objects whose names are so many bytes long."""
        (self.folder / "objects" / "pack").mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.folder / "refs").mkdir(mode=0o700, exist_ok=True)
        (self.folder / "HEAD").write_text("ref: refs/heads/none\n")
        version, extension = (1, "[extensions]\n\tobjectFormat = sha256\n") if length == 32 else (0, "")
        config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}"
        (self.folder / "config").write_text(config)

    def link(self, objects: int) -> int:
        """Links all objects of an open `objects` folder and of its alternates that are not linked yet.

        Answers how many files that were; raises LinkError, OSError.
        """
        target = os.open(self.folder / "objects", FOLDER)
        try:
            return sum(self._link(one, target) for one in _with_alternates(objects))
        finally:
            os.close(target)

    def add(self, source: int, folder: bytes, file: bytes) -> bool:
        """Links one file of an open folder in `objects`; whether it is held. Raises LinkError, OSError."""
        # What was linked once may have been pruned since.
        if folder + file not in self._held or not self._path(folder, file).exists():
            (self.folder / "objects" / os.fsdecode(folder)).mkdir(mode=0o700, exist_ok=True)
            into = os.open(self.folder / "objects" / os.fsdecode(folder), FOLDER)
            try:
                self._link_file(source, into, folder, file)
            finally:
                os.close(into)
        return folder + file in self._held

    def bytes_of(self, folder: bytes, file: bytes) -> bytes:
        """A kept file, whole and not verified; raises OSError."""
        return self._path(folder, file).read_bytes()

    def open(self, folder: bytes, file: bytes) -> int:
        """A kept file, open; raises OSError."""
        return os.open(self._path(folder, file), os.O_RDONLY | os.O_CLOEXEC)

    def differs(self, folder: bytes, file: bytes, *, size: int, mtime_ns: int) -> bool:
        """Whether a kept file is another than it was with these marks; not when it is kept no more."""
        try:
            found = os.stat(self._path(folder, file))
        except OSError:
            return False
        return (found.st_size, found.st_mtime_ns) != (size, mtime_ns)

    def replace(self, folder: bytes, file: bytes, data: bytes) -> None:
        """Puts a copy of our own in the place of a kept file; raises OSError."""
        path = self._path(folder, file)
        temp = path.with_name(path.name + ".new")
        with open(temp, "wb") as target:
            target.write(data)
            target.flush()
            sync(target.fileno())
        os.replace(temp, path)

    def _path(self, folder: bytes, file: bytes) -> Path:
        return self.folder / "objects" / os.fsdecode(folder) / os.fsdecode(file)

    def sizes(self, names: Sequence[bytes]) -> list[int]:
        """The sizes of blobs, -1 for each that is not held or is no blob; raises OSError without git."""
        asked = b"".join(name.hex().encode() + b"\n" for name in names)
        format_ = "--batch-check=%(objecttype) %(objectsize)"
        ran = self._git("cat-file", "--buffer", format_, input_=asked)
        lines = ran.splitlines()
        if len(lines) != len(names):
            return [-1] * len(names)
        return [int(line[5:]) if line.startswith(b"blob ") else -1 for line in lines]

    def read(self, names: Iterable[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        """Blobs by their names; None for one that is not held. The bytes are not verified here."""
        asked = list(names)
        for start in range(0, len(asked), _AT_ONCE):
            yield from self._read(asked[start : start + _AT_ONCE])

    def _read(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        command = ["git", f"--git-dir={self.folder}", "cat-file", "--batch", "--buffer"]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd="/",
        ) as git:
            assert git.stdin is not None
            assert git.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                git.stdin.write(b"".join(name.hex().encode() + b"\n" for name in names))
                git.stdin.close()
            for name in names:
                header = git.stdout.readline().split()
                if len(header) != 3:
                    yield name, None
                    continue
                data = git.stdout.read(int(header[2]))
                git.stdout.read(1)
                yield name, data if header[1] == b"blob" else None

    def _git(self, *words: str, input_: bytes) -> bytes:
        return subprocess.run(
            ["git", f"--git-dir={self.folder}", *words],
            input=input_,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd="/",
            check=False,
        ).stdout

    def _link(self, objects: int, target: int) -> int:
        return sum(
            self._link_folder(objects, target, name, pattern)
            for name, pattern in [(b"pack", _PACK), *((fan, _LOOSE) for fan in _FAN)]
        )

    def _link_folder(self, objects: int, target: int, name: bytes, pattern: re.Pattern[bytes]) -> int:
        try:
            source = os.open(name, FOLDER, dir_fd=objects)
        except OSError:
            return 0
        try:
            found = [os.fsencode(entry) for entry in os.listdir(source)]
            new = [file for file in found if pattern.fullmatch(file) and name + file not in self._held]
            if not new:
                return 0
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=target)
            into = os.open(name, FOLDER, dir_fd=target)
            try:
                return sum(self._link_file(source, into, name, file) for file in _packs_first(new))
            finally:
                os.close(into)
        finally:
            os.close(source)

    def _link_file(self, source: int, into: int, folder: bytes, file: bytes) -> int:
        try:
            os.link(file, file, src_dir_fd=source, dst_dir_fd=into, follow_symlinks=False)
        except FileExistsError:
            self._renew(source, into, file)
            self._held.add(folder + file)
            return 0
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise LinkError(*error.args) from None
        self._held.add(folder + file)
        return 1

    def _renew(self, source: int, into: int, file: bytes) -> None:
        """Links a file anew that somebody has cut short, or that a crash left so."""
        with contextlib.suppress(FileNotFoundError):
            now, kept = (os.stat(file, dir_fd=folder, follow_symlinks=False) for folder in (source, into))
            if now.st_size > kept.st_size:
                os.unlink(file, dir_fd=into)
                os.link(file, file, src_dir_fd=source, dst_dir_fd=into, follow_symlinks=False)


def environment() -> dict[str, str]:
    """What git is started with: no configuration but that of the repository named, no questions, no locks."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {
        **kept,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def _packs_first(files: list[bytes]) -> list[bytes]:
    # git looks for what the index of a pack promises, so the index comes last.
    return sorted(files, key=lambda file: (file.endswith(b".idx"), file))


def _with_alternates(objects: int) -> Iterator[int]:
    waiting = [(os.dup(objects), 0)]
    while waiting:
        here, depth = waiting.pop()
        try:
            yield here
            if depth < _DEEPEST:
                waiting += [(handle, depth + 1) for handle in _alternates(here)]
        finally:
            os.close(here)


def _alternates(objects: int) -> Iterator[int]:
    try:
        handle = os.open(b"info/alternates", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=objects)
    except OSError:
        return
    with os.fdopen(handle, "rb") as file:
        lines = file.read(1 << 16).splitlines()
    for line in lines:
        if line and not line.startswith(b"#"):
            with contextlib.suppress(OSError):
                yield os.open(line, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=objects)
