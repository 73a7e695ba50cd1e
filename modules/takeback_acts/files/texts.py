"""Texts: the bytes that a caller wants in a file, and where they come from."""

from __future__ import annotations

import binascii
import os
from base64 import b64decode

from takeback.errors import ConflictError, UsageError
from takeback_acts.files import beneath, failures, paths
from takeback_acts.files.beneath import Spot
from takeback_acts.files.models import Edit, Write
from takeback_acts.files.reading import digest, read_all, steady
from takeback_acts.files.trees import Seen


def given(args: Write) -> bytes:
    """The content of a write; raises UsageError `files.content`."""
    if (args.content is None) == (args.content_base64 is None):
        raise UsageError(
            "files.content",
            "Exactly one of content and content_base64 is needed",
            "Text as content, bytes as base64.",
        )
    if args.content is not None:
        return args.content.encode()
    try:
        return b64decode(args.content_base64 or "", validate=True)
    except binascii.Error:
        raise UsageError("files.content", "content_base64 is not base64", "Encode the bytes again.") from None


def replaced(old: bytes, args: Edit, path: bytes) -> bytes:
    """A file's bytes after an edit; raises ConflictError `files.no_match`, `files.many_matches`."""
    count = old.count(args.old.encode())
    if count == 1 or (count and args.all):
        return old.replace(args.old.encode(), args.new.encode())
    name = paths.shown(path)
    if not count:
        raise ConflictError(
            "files.no_match", f"The old text occurs 0 times in {name}", "Read the file again."
        )
    raise ConflictError(
        "files.many_matches",
        f"The old text occurs {count} times in {name}",
        "Take more of its surroundings along, or set all.",
        data={"count": count},
    )


def current(spot: Spot, now: Seen, most: int) -> bytes:
    """The bytes, at most so many, of a file just looked at; raises UsageError `files.too_large`. Blocks."""
    handle = beneath.open_file(spot.folder, spot.name, spot.path)
    try:
        size = os.fstat(handle).st_size
        if size > most:
            raise UsageError(
                "files.too_large",
                f"{paths.shown(spot.path)} has {size} bytes, which is more than an edit takes",
                "Write the file anew.",
            )
        held: list[bytes] = []

        def take(handle: int, size: int) -> tuple[str, int]:
            held[:] = [read_all(handle, size)]
            return digest(held[0]), len(held[0])

        _, sha256, _ = steady(handle, spot.path, take)
    finally:
        os.close(handle)
    if sha256 != now.state.sha256:
        raise failures.changed(spot.path)
    return held[0]
