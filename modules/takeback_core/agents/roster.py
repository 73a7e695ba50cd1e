"""The roster: every agent in memory, found by name and by the digest of its token."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass, replace
from sqlite3 import Row
from typing import Any

from takeback.moments import stamp
from takeback_core.agents.models import Agent

PREFIX = "tb_"


@dataclass(frozen=True, slots=True)
class Record:
    """One agent as stored; moments are seconds since the epoch."""

    name: str
    digest: bytes
    roots: tuple[str, ...]
    assistant: bool
    created: float
    expires: float | None = None
    revoked: float | None = None
    tables: tuple[str, ...] = ()

    @staticmethod
    def of(row: Row) -> Record:
        """The record in a row of the table."""
        values: dict[str, Any] = dict(row)
        values["roots"] = tuple(json.loads(values["roots"]))
        values["tables"] = tuple(json.loads(values["tables"]))
        values["assistant"] = bool(values["assistant"])
        return Record(**values)

    def row(self) -> tuple[Any, ...]:
        """The record's columns, in the table's order."""
        roots, tables = json.dumps(self.roots), json.dumps(self.tables)
        moments = (self.created, self.expires, self.revoked)
        return (self.name, self.digest, roots, self.assistant, *moments, tables)

    def shown(self) -> Agent:
        """The record as the person sees it."""
        return Agent(
            name=self.name,
            roots=list(self.roots),
            tables=list(self.tables),
            assistant=self.assistant,
            created=stamp(self.created),
            expires=None if self.expires is None else stamp(self.expires),
            revoked=None if self.revoked is None else stamp(self.revoked),
        )

    def refusal(self) -> str:
        """Why this agent's token is no good now; empty while it is good."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= time.time():
            return "expired"
        return ""


class Roster:
    """Every agent there is, kept true by the module on every change."""

    def __init__(self) -> None:
        self._by_name: dict[str, Record] = {}
        self._by_digest: dict[bytes, Record] = {}

    def all(self) -> list[Record]:
        """Every record, by name."""
        return sorted(self._by_name.values(), key=lambda record: record.name)

    def named(self, name: str) -> Record | None:
        """An agent by name."""
        return self._by_name.get(name)

    def holder(self, token: str) -> Record | None:
        """The agent whose token this is, good or not; the last comparison takes constant time."""
        digest = digest_of(token)
        record = self._by_digest.get(digest)
        return record if record is not None and hmac.compare_digest(record.digest, digest) else None

    def put(self, record: Record) -> None:
        """Add an agent, or take its new state."""
        if (old := self._by_name.get(record.name)) is not None:
            del self._by_digest[old.digest]  # its token may be another one now
        self._by_name[record.name] = record
        self._by_digest[record.digest] = record

    def assistant(self) -> Record | None:
        """The agent that is the person's assistant now."""
        return next((r for r in self._by_name.values() if r.assistant and r.revoked is None), None)


def mint() -> str:
    """A new token: 32 random bytes behind a prefix that secret scanners can look for."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    """What is stored of a token: with 256 random bits in it a plain hash can't be guessed back."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def without_roots(record: Record, names: set[str]) -> Record:
    """The record with some roots taken away."""
    return replace(record, roots=tuple(root for root in record.roots if root not in names))


def without_table(record: Record, name: str) -> Record:
    """The record with a table, as it was granted, taken away."""
    return replace(record, tables=tuple(table for table in record.tables if table != name))
