"""The acted-log's small client: `from takeback_core.undo import act`."""

from __future__ import annotations

from takeback_core.undo.client import BegunAct, abandon, act, begin, confirm

__all__ = ["BegunAct", "abandon", "act", "begin", "confirm"]
