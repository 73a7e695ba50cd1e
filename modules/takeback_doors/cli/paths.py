"""Paths as a person at this terminal calls them: from the folder they stand in, or from their home."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache


def of_resource(uri: str) -> str | None:
    """The path that a resource of files names; None for one of another owner."""
    if not uri.startswith("files:"):
        return None
    from urllib.parse import unquote

    return unquote(uri.removeprefix("files:"), errors="surrogateescape")


def to_resource(path: str) -> str:
    """The resource of what lies at a path, by its real folder; the last part may be a link itself."""
    from urllib.parse import quote_from_bytes

    folder, name = os.path.split(os.path.abspath(path))
    return "files:" + quote_from_bytes(os.fsencode(os.path.join(os.path.realpath(folder), name)), safe="/")


def near(path: str) -> str:
    """A path relative to the current folder or, from there on, to `~`, where it lies beneath one."""
    here, home = _here(), _home()
    if here and path.startswith(here):
        return path.removeprefix(here) or "."
    return f"~/{path.removeprefix(home)}" if home and path.startswith(home) else path


def brief(path: str, room: int) -> str:
    """A near path in at most `room` characters, as long as its last part fits: the middle goes first."""
    whole = near(path)
    if len(whole) <= room:
        return whole
    *folders, name = whole.rstrip("/").split("/")
    first = "/".join(folders[:2]) if whole.startswith("/") else folders[0] if folders else ""
    tail = name
    for folder in reversed(folders):
        if len(first) + len(folder) + len(tail) + 4 > room:
            break
        tail = f"{folder}/{tail}"
    made = f"{first}/…/{tail}"
    return made if len(made) < len(whole) else whole


def in_words(words: str, resources: Iterable[str], room: int) -> str:
    """Words with the paths of these resources made brief, and any other path made near."""
    found = {path.rstrip("/") for uri in resources if (path := of_resource(uri))} - {""}
    for path in sorted(found, key=len, reverse=True):
        words = words.replace(path, brief(path, room))
    if here := _here():
        words = words.replace(f" {here}", " ")
    if home := _home():
        words = words.replace(f" {home}", " ~/")
    return words


@cache
def _here() -> str:
    try:
        return _beneath(os.getcwd())
    except OSError:
        return ""


@cache
def _home() -> str:
    return _beneath(os.path.realpath(os.path.expanduser("~")))


def _beneath(folder: str) -> str:
    # From the root everything is beneath, and a path without its first slash would mislead.
    return f"{folder}/" if folder != "/" else ""
