"""A folder's contents as hashes, to tell whether every byte is as it was."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

import takeback

# What a build or an interpreter makes again by itself is no part of the sample.
_REMADE = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def sample(into: Path) -> None:
    """Copy this project's own kernel, and its documents where they are at hand, and add what text is not."""
    source = Path(takeback.__file__).parent
    documents = source.parents[1] / "docs"
    shutil.copytree(source, into / "kernel", ignore=_REMADE)
    if documents.is_dir():
        shutil.copytree(documents, into / "docs", ignore=_REMADE)
    else:
        (into / "docs").mkdir()
        (into / "docs" / "index.md").write_text("# Documents\n\nWhat to read first.\n\nWhat to read next.\n")
    (into / "docs" / "pictures").mkdir()
    (into / "docs" / "pictures" / "logo.bin").write_bytes(bytes(range(256)) * 512)
    (into / "docs" / "pictures" / "empty").mkdir()
    script = into / "kernel" / "build.sh"
    script.write_text("#!/bin/sh\nexec python3 -m build\n")
    script.chmod(0o755)
    (into / "kernel" / "latest").symlink_to("build.sh")


def fingerprint(root: Path) -> dict[str, str]:
    """Every path beneath a folder with what it is: mode, and a hash of its bytes or a link's target."""
    found: dict[str, str] = {}
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = Path(folder, name)
            found[str(path.relative_to(root))] = _what(path)
    return found


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The paths that are not the same in both."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def _what(path: Path) -> str:
    status = path.lstat()
    mode = stat.filemode(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return f"{mode} {os.readlink(path)}"
    if stat.S_ISDIR(status.st_mode):
        return mode
    return f"{mode} {hashlib.sha256(path.read_bytes()).hexdigest()}"
