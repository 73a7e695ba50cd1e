"""Named: which paths an agent's tool says it will change. It imports nothing of takeback's."""

from __future__ import annotations

import re
from typing import Any

# What agents call the path of a file in a tool's input, most specific first.
_KEYS = (
    "file_path",
    "filePath",
    "notebook_path",
    "notebookPath",
    "absolute_path",
    "target_file",
    "targetFile",
    "path",
)
_PATCHES = ("command", "input", "patch", "patchText", "patch_text")
_HEADER = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)
_BEGIN = "*** Begin Patch"
_MOST = 256


def named(given: Any) -> list[str]:
    """The paths in a tool's input as they are written, each once: of a field, of edits, or of a patch."""
    if isinstance(given, str):
        return _of_patch(given)
    if not isinstance(given, dict):
        return []
    found = [given[key] for key in _KEYS if isinstance(given.get(key), str) and given[key]][:1]
    for edits in (given.get("edits"), given.get("changes")):
        found += _of_edits(edits)
    for key in _PATCHES:
        found += _of_words(given.get(key))
    return list(dict.fromkeys(found))[:_MOST]


def is_patch(given: Any) -> bool:
    """Whether a tool's input, or a command in it, is a patch in the form that Codex writes."""
    return (
        bool(_of_patch(given)) if isinstance(given, str) else any(_of_words(given.get(k)) for k in _PATCHES)
    )


def _of_edits(edits: Any) -> list[str]:
    if isinstance(edits, dict):
        return [path for path in edits if isinstance(path, str)]
    if not isinstance(edits, list):
        return []
    each = [edit.get(key) for edit in edits if isinstance(edit, dict) for key in _KEYS]
    return [path for path in each if isinstance(path, str) and path]


def _of_words(words: Any) -> list[str]:
    if isinstance(words, str):
        return _of_patch(words)
    if isinstance(words, list):
        return [path for word in words if isinstance(word, str) for path in _of_patch(word)]
    return []


def _of_patch(text: str) -> list[str]:
    return _HEADER.findall(text) if _BEGIN in text else []
