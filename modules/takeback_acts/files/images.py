"""Images: what others kept of a path at an earlier moment, and how far it is believed."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable, Mapping

from anyio import to_thread

from takeback.errors import RefusedError, UsageError
from takeback_acts.files import births, paths
from takeback_acts.files.blobs import Blobs, Intake
from takeback_acts.files.edit_models import Image
from takeback_acts.files.open_edits import Before, OpenEdit
from takeback_acts.files.states import ABSENT, State
from takeback_acts.files.trees import Seen

_MOST_COMPARED = 4 << 20


def by_path(given: Iterable[Image]) -> dict[bytes, Image]:
    """The images by their canonical paths; raises UsageError `files.path`."""
    return {paths.canonical(paths.encode(image.path)): image for image in given}


async def before(path: bytes, given: Mapping[bytes, Image], at: int, intake: Intake) -> Before:
    """What lay at a path before; raises RefusedError `files.no_image`, UsageError `files.image`."""
    if path not in given:
        raise RefusedError(
            "files.no_image",
            f"Nothing is known of what lay at {paths.shown(path)} then",
            "It can't be taken back from here.",
        )
    return Before(path, path, _state(given[path], intake))


async def after(one: Before, given: Mapping[bytes, Image], edit: OpenEdit, now: Seen, intake: Intake) -> Seen:
    """What an edit left at a path: as it was told, else what lies there now.

    Raises RefusedError `files.born_before` where the path is said to have been empty and a file lies there
    that may be older than that: to take it back would delete what the edit did not make.
    """
    told = Seen(_state(given[one.path], intake)) if one.path in given else now
    left = now if now.state.same(told.state) else told
    appeared = one.state.kind == "absent" and now.state.kind != "absent"
    if edit.given and appeared and not await to_thread.run_sync(births.surely_later, one.path, edit.at):
        raise RefusedError(
            "files.born_before",
            f"What lies at {paths.shown(one.path)} may have been there before",
            "It stays when the rest is taken back.",
        )
    return left


async def touched_meanwhile(befores: Iterable[Before], found: Mapping[str, str], blobs: Blobs) -> set[bytes]:
    """The paths at which a tool says it found another text than was kept before it.

    Somebody saved in between, as while the agent asked a person whether it may. What the tool says decides
    only whose act it is, never which bytes come back. Tools read text in ways of their own, so line ends
    don't count.
    """
    said = {
        paths.canonical(paths.encode(path)): _plain(text.encode(errors="replace"))
        for path, text in found.items()
    }
    return {
        one.path
        for one in befores
        if one.path in said
        and one.state.kind == "file"
        and one.state.size <= _MOST_COMPARED
        and _plain(await blobs.read(one.state.sha256)) != said[one.path]
    }


def _plain(data: bytes) -> bytes:
    text = data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    return text.replace("\r\n", "\n").rstrip("\n").encode()


def _state(image: Image, intake: Intake) -> State:
    if image.content_base64 is None:
        return ABSENT
    try:
        data = b64decode(image.content_base64, validate=True)
    except binascii.Error:
        raise UsageError(
            "files.image", f"What was kept of {image.path:.200} is damaged", "Leave it out."
        ) from None
    return State(
        kind="file", mode=image.mode, mtime_ns=image.mtime_ns, size=len(data), sha256=intake.data(data)
    )
