"""A tally: what rules did in one round, told in a line for each rule and not for each file."""

from __future__ import annotations

import logging
from collections import Counter
from typing import NamedTuple

from takeback import TakebackError
from takeback_acts.watchers.names import files, shown
from takeback_acts.watchers.rules import Rule


class _Left(NamedTuple):
    rule: str
    code: str


class Tally:
    """Counts files by what became of them."""

    def __init__(self) -> None:
        self._moved: Counter[str] = Counter()
        self._back: Counter[str] = Counter()
        self._left: Counter[_Left] = Counter()
        self._last: dict[_Left, TakebackError] = {}

    def moved(self, rule: Rule) -> None:
        """A file went where its rule says."""
        self._moved[rule.name] += 1

    def came_back(self, rule: Rule) -> None:
        """A file was left alone since an undo had brought it back."""
        self._back[rule.name] += 1

    def left(self, rule: Rule, error: TakebackError) -> None:
        """A file was left where it is."""
        kind = _Left(rule.name, error.code)
        self._left[kind] += 1
        self._last[kind] = error

    def tell(self, log: logging.Logger) -> None:
        """Write it to the log."""
        for rule, count in self._moved.items():
            log.info("Rule %s moved %s", rule, files(count))
        for rule, count in self._back.items():
            log.info("Rule %s leaves %s alone that an undo brought back", rule, files(count))
        for kind, count in self._left.items():
            error = self._last[kind]
            what = files(count)
            log.warning("Rule %s left %s (%s): %s", kind.rule, what, kind.code, shown(error.message))
