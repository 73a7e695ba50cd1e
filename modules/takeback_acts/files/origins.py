"""Origins: whether what appeared in a window may be the only copy of something that was not captured before.

To take such a path away would lose what it holds, so it stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from takeback_acts.files import births
from takeback_acts.files.capture.changes import REPACKED
from takeback_acts.files.paths import shown, split
from takeback_acts.files.rooted import Found

# What tools keep for themselves alone: nobody copies it to have it elsewhere.
_CACHES = {
    b"__pycache__", b".mypy_cache", b".ruff_cache", b".pytest_cache", b".parcel-cache", b".turbo", b".tox",
    b".nox", b".gradle",
}  # fmt: skip


class Origins:
    """Everything that changed in a window that began `at` this moment, by the clock of births."""

    def __init__(self, found: Mapping[bytes, Found], at: int) -> None:
        self._at = at
        self._captured = {one.before.inode for one in found.values() if _comes_back(one)}
        self._went = next((path for path, one in found.items() if _is_lost(path, one)), None)

    def doubt(self, path: bytes, one: Found) -> str:
        """Why a path that appeared has to stay; empty when it may go. Blocks."""
        if one.before.kind != "absent" or one.after.kind not in ("file", "dir", "link"):
            return ""
        if one.after.reason == "unkept":
            return "it stays, for there was no room to keep what it holds"
        # By another name it is still there, or it comes back to where it was.
        if one.of_git or one.after.linked or one.after.inode in self._captured:
            return ""
        if self._went is not None and (one.after.size or one.after.kind == "dir"):
            return f"it stays, for it may hold what {shown(self._went):.300} held, which was not captured"
        born = births.born(path)
        if born is not None and born < self._at:
            return "it stays, for it is older than the command and came from where nothing was captured"
        return ""


def _comes_back(one: Found) -> bool:
    return one.before.kind != "absent" and one.before.state() is not None


def _is_lost(path: bytes, one: Found) -> bool:
    """Whether something went whose content nobody has."""
    before, after = one.before, one.after
    if not before.reason or before.kind not in ("file", "dir") or before.reason == REPACKED:
        return False
    if before.reason == "left_out" and split(path)[1] in _CACHES:
        return False
    return (after.kind, after.inode) != (before.kind, before.inode)
