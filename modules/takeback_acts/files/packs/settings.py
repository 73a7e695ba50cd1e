"""Settings of the blob store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackSettings:
    """Sizes are in bytes.

    Blobs up to `small` share segments of about `segment` bytes and at most `records` blobs; larger ones are
    files of their own. `limit` bounds what the store takes on disk and `owner_limit` what is kept for each
    owner; 0 is no limit. A segment is rewritten when at most the share `rewrite_below` of it is needed.
    """

    small: int = 64 * 1024
    segment: int = 64 << 20
    records: int = 1 << 16
    compress: bool = False
    limit: int = 0
    owner_limit: int = 0
    rewrite_below: float = 0.5
