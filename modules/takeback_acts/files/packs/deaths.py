"""Deaths: which blobs of a segment a sweep has dropped, beside the segment until that is rewritten.

The list names slots of one index by that index's checksum. Where it does not fit the index any more the
blobs count as kept again, which costs room and loses nothing.
"""

from __future__ import annotations

import json
from array import array
from zlib import crc32

from takeback_acts.files.packs import disk
from takeback_acts.files.packs.catalog import Volume
from takeback_acts.files.packs.index import About


def write(volume: Volume, about: About) -> None:
    """Makes the list durable."""
    assert volume.dead is not None
    slots = array("I", (slot for slot, gone in enumerate(volume.dead) if gone)).tobytes()
    said = json.dumps({"index": about.crc, "count": about.count, "crc": crc32(slots)}).encode()
    disk.put(volume.dead_path, (said, b"\n", slots))


def read(volume: Volume, about: About) -> list[int]:
    """The slots that were dropped."""
    try:
        said, _, slots = volume.dead_path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return []
    try:
        listed = json.loads(said)
    except ValueError:
        return []
    found = array("I")
    if listed != {"index": about.crc, "count": about.count, "crc": crc32(slots)}:
        return []
    found.frombytes(slots)
    return [slot for slot in found if slot < about.count]
