"""Parts: some items of a restore by themselves, and items that make sense only with each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from takeback.errors import UsageError
from takeback_acts.files import paths
from takeback_acts.files.judging import Case
from takeback_acts.files.models import Back

# What tells a git repository where it is: one of these put back alone would contradict the others.
_GIT = re.compile(
    rb"(.*?/\.git(?:/modules/.+?)?)/(?:worktrees/[^/]+/)?"
    rb"(?:HEAD|[A-Z]+_HEAD|index|packed-refs|refs|logs|rebase-merge|rebase-apply|sequencer)(?:/.*)?",
    re.DOTALL,
)


def chosen(items: Sequence[Back], only: Collection[str]) -> list[Back]:
    """The items among these that are asked for; raises UsageError `files.path` when there is none."""
    names = set(only)
    found = [item for item in items if item.resource in names or f"{item.resource}/" in names]
    if not found:
        raise UsageError("files.path", "There is nothing to put back", "Name at least one path.")
    there = {item.resource for item in found}
    return [
        item if item.source is None or item.source in there else item.model_copy(update={"source": None})
        for item in found
    ]


class Bonds:
    """Which items go together: the two ends of a move, and git's own files of one repository."""

    def __init__(self, items: Iterable[Back]) -> None:
        self._bonds: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        for item in items:
            if item.source is not None:
                self._bond(item.source, item.resource)
                self._bond(item.source, item.source)
            elif not item.own and (match := _GIT.fullmatch(paths.parse(item.resource)[0])) is not None:
                self._bond(paths.resource(match[1]), item.resource)

    def _bond(self, name: str, member: str) -> None:
        self._bonds[member] = name
        self._members.setdefault(name, []).append(member)

    def part(self, cases: Sequence[Case]) -> None:
        """Marks the cases of which one that they go together with is left out."""
        there = {case.back.resource for case in cases}
        lacking = {
            bond: absent[0]
            for bond, members in self._members.items()
            if (absent := [one for one in members if one not in there])
        }
        for case in cases:
            if (other := lacking.get(self._bonds.get(case.back.resource, ""))) is not None:
                case.apart = paths.shown(paths.parse(other)[0])
