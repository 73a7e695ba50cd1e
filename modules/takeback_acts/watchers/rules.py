"""Rules: the person's settings, checked once, and what they say of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import translate

from takeback.errors import ConflictError, RefusedError, TakebackError, UsageError
from takeback.home import Home
from takeback_acts.watchers.names import shown
from takeback_acts.watchers.settings import RuleSettings
from takeback_acts.watchers.template import Template


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that can be followed; `root` is absolute and holds no link, `words` say the rule whole."""

    name: str
    root: str
    pattern: re.Pattern[str]
    hidden: bool
    target: Template
    words: str

    def matches(self, name: str) -> bool:
        """Whether a file of this name in the root is the rule's; a hidden one only if the pattern says so."""
        return (self.hidden or not name.startswith(".")) and self.pattern.match(name) is not None

    def leads_to(self, name: str, day: date) -> str:
        """The absolute path where a file goes; raises RefusedError `watchers.target`."""
        return os.path.join(self.root, self.target.fill(name, day))


def read(given: Iterable[RuleSettings], home: Home) -> tuple[list[Rule], dict[str, TakebackError]]:
    """The rules that can be followed, in order, and for the others by name why they can't."""
    rules: dict[str, Rule] = {}
    wrong: dict[str, TakebackError] = {}
    for one in given:
        try:
            if one.name in rules or one.name in wrong:
                raise _wrong(
                    one.name, "has the name of a rule before it", "Give each rule a name of its own."
                )
            rules[one.name] = _rule(one, home)
        except TakebackError as error:
            # A second one of that name is off; the first stays as it is.
            wrong.setdefault(one.name, error)
    return list(rules.values()), wrong


def require_end(rules: Sequence[Rule], path: str) -> None:
    """Raises ConflictError `watchers.loop` when a file at this path would be taken by a rule again."""
    folder, name = os.path.split(path)
    for rule in rules:
        if rule.root == folder and rule.matches(name):
            raise ConflictError(
                "watchers.loop",
                f"At {shown(path)} the file would be taken again, by rule {rule.name}",
                "Choose a pattern that the target does not match, or another folder.",
            )


def _rule(given: RuleSettings, home: Home) -> Rule:
    if "/" in given.pattern:
        hint = "A rule sees what lies in its root itself; give each folder a rule of its own."
        raise _wrong(given.name, "has a pattern with a `/` in it", hint)
    if given.action == "rename" and "/" in given.target:
        raise _wrong(given.name, "renames to a target with a `/` in it", 'Write `action = "move"`.')
    root = os.path.expanduser(given.root)
    if not os.path.isabs(root):
        raise _wrong(given.name, "has a root that is not absolute", "Begin it with `/` or `~/`.")
    root = os.path.realpath(root)
    _require_foreign(given.name, root, home)
    return Rule(
        name=given.name,
        root=root,
        pattern=re.compile(translate(given.pattern)),
        hidden=given.pattern.startswith("."),
        target=Template(given.target + "{name}" if given.target.endswith("/") else given.target),
        words=f"rule {given.name}: {given.action} {given.pattern} in {root} to {given.target}",
    )


def _require_foreign(name: str, root: str, home: Home) -> None:
    for folder in (home.config, home.data, home.state, home.runtime):
        own = os.path.realpath(folder)
        if os.path.commonpath([own, root]) == own:
            raise RefusedError(
                "watchers.home",
                f"The root of rule {name} lies in takeback's own home",
                "Watch a folder of yours.",
            )


def _wrong(name: str, why: str, hint: str) -> UsageError:
    return UsageError("watchers.rule", f"Rule {name} {why}", hint)
