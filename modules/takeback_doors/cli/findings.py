"""One thing that `takeback doctor` looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from takeback.errors import TakebackError


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether one thing is well, in words, and what to do where it is not."""

    name: str
    ok: bool
    detail: str
    hint: str = ""

    @classmethod
    def of(cls, name: str, error: TakebackError) -> Finding:
        """What is wrong, as an error says it."""
        return cls(name, False, error.message, error.hint)

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return asdict(self)
