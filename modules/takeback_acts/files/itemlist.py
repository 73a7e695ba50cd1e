"""The list of an act's items, as a blob of its own where they are too many for the act's row.

It is a manifest with two entries for each item, before and after, so that what it names is kept with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from takeback.errors import TakebackError
from takeback_acts.files import trees
from takeback_acts.files.models import Back
from takeback_acts.files.paths import by_itself, resource
from takeback_acts.files.states import State
from takeback_acts.files.trees import Entry

# So many items are at hand in the row itself.
MOST_IN_ROW = 2_000


def dump(items: Iterable[tuple[bytes, State, State, bool]]) -> bytes:
    """The bytes of a list of paths with their states before and after, and whether it is the entry alone."""
    return trees.dump(
        Entry(by_itself(path) if own else path, state)
        for path, before, after, own in items
        for state in (before, after)
    )


def load(data: bytes) -> list[Back]:
    """The items of a list; raises TakebackError `files.blob_corrupt` when it is none."""
    entries = trees.load(data)
    pairs = list(zip(entries[::2], entries[1::2], strict=True)) if len(entries) % 2 == 0 else []
    if not pairs or any(one.path != other.path for one, other in pairs):
        raise TakebackError(
            "files.blob_corrupt", "The list of what an act changed is damaged", "Check the disk."
        )
    return [
        Back.model_construct(
            resource=resource(before.path), before=before.state, after=after.state, source=None
        )
        for before, after in pairs
    ]
