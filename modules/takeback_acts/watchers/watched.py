"""A watched root: its rules, what has arrived in it, and what was left alone and why."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from takeback import Check, TakebackError
from takeback_acts.watchers.arrivals import Arrivals, Mark
from takeback_acts.watchers.names import files, shown
from takeback_acts.watchers.rules import Rule


class Trouble(NamedTuple):
    """Why a rule left a file alone."""

    rule: str
    mark: Mark
    error: TakebackError


class Watched:
    """One folder and the rules whose root it is; the first of them that matches a file has it."""

    def __init__(self, path: str, rules: Iterable[Rule], settle: float, log: logging.Logger) -> None:
        self.path = path
        self.rules = tuple(rules)
        self.arrivals = Arrivals(settle)
        self._log = log
        self._begun = False
        self._away = ""
        self._troubles: dict[str, Trouble] = {}
        # How many files a rule took that a later one matches too.
        self._shared: Counter[tuple[str, str]] = Counter()

    def concerns(self, name: str) -> bool:
        """Whether any rule matches a file of this name."""
        return any(rule.matches(name) for rule in self.rules)

    def rule_of(self, name: str) -> Rule:
        """The rule that has a file which concerns one; those that match it as well are counted."""
        first, *others = (rule for rule in self.rules if rule.matches(name))
        self._shared.update((first.name, other.name) for other in others)
        return first

    def take_in(self, found: Mapping[str, Mark] | str, now: float) -> None:
        """What the folder holds now, or why it can't be looked at."""
        if isinstance(found, str):
            self._begun = True
            self._lose(found)
            return
        if self._away:
            self._log.info("%s is there again", shown(self.path))
            self._away = ""
        if self._begun:
            self.arrivals.note(found, now)
        else:
            self.arrivals.begin(found)
            self._begun = True
        self._troubles = {
            name: trouble
            for name, trouble in self._troubles.items()
            if self.arrivals.holds(name, trouble.mark)
        }

    def forget(self, name: str) -> None:
        """A file was moved away."""
        self.arrivals.forget(name)
        self._troubles.pop(name, None)

    def leave(self, name: str, mark: Mark) -> None:
        """Leave a file alone until it changes."""
        self.arrivals.leave(name, mark)
        self._troubles.pop(name, None)

    def fail(self, name: str, trouble: Trouble, again: float) -> None:
        """Remember why a file stays, until it changes or, where the same may succeed later, until `again`."""
        if trouble.error.retryable:
            self.arrivals.put_off(name, again)
        else:
            self.arrivals.leave(name, trouble.mark)
        self._troubles[name] = trouble

    def checks(self) -> list[Check]:
        """A line of `takeback doctor` for each rule."""
        return [self._check(rule) for rule in self.rules]

    def _lose(self, why: str) -> None:
        self.arrivals.lost()
        if why != self._away:
            self._log.warning("%s can't be watched until it is there: %s", shown(self.path), why)
            self._away = why

    def _check(self, rule: Rule) -> Check:
        name = f"watcher {rule.name}"
        if self._away:
            detail = f"{shown(self.path)} can't be watched: {self._away}"
            return Check(name, False, detail, "Make it a folder that you may read; it is waited for.")
        mine = [(file, trouble) for file, trouble in self._troubles.items() if trouble.rule == rule.name]
        if mine:
            file, trouble = mine[-1]
            where = shown(os.path.join(self.path, file))
            detail = f"{files(len(mine))} left alone, last {where}: {trouble.error.message}"
            return Check(name, False, detail, trouble.error.hint)
        return Check(name, True, rule.words + self._taken_first(rule))

    def _taken_first(self, rule: Rule) -> str:
        first = [f"{count} by {one}" for (one, other), count in self._shared.items() if other == rule.name]
        return f" (of what it matches, earlier rules took {', '.join(first)})" if first else ""
