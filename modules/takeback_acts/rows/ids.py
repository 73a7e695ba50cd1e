"""Ids of journal entries: UUIDv7 (RFC 9562), whose time is for people; nothing is ordered by it."""

from __future__ import annotations

import secrets
import time


def new() -> str:
    """A fresh id."""
    ms = time.time_ns() // 1_000_000 & (1 << 48) - 1
    rand = secrets.randbits(74)
    value = ms << 80 | 0x7 << 76 | (rand >> 62) << 64 | 0b10 << 62 | rand & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
