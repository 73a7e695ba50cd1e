"""Rows of a person's databases; and for apps without a kernel, a journal of their own: `Journal`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from takeback_acts.rows.library.acts import Act
    from takeback_acts.rows.library.failures import JournalConflict
    from takeback_acts.rows.library.journal import Journal
    from takeback_acts.rows.library.plans import Conflict, Item, Plan, Rewound, Row
    from takeback_acts.rows.library.sync import SyncJournal

__all__ = ["Act", "Conflict", "Item", "Journal", "JournalConflict", "Plan", "Rewound", "Row", "SyncJournal"]

_HOMES = {
    "Act": "acts",
    "JournalConflict": "failures",
    "Journal": "journal",
    "Conflict": "plans",
    "Item": "plans",
    "Plan": "plans",
    "Rewound": "plans",
    "Row": "plans",
    "SyncJournal": "sync",
}


def __getattr__(name: str) -> Any:
    """The library is imported when somebody asks for it: the module does without SQLAlchemy."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.library.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
