"""What is chosen to be taken back: the rows to reverse, and the acts behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from takeback_core.undo.models import Touched
from takeback_core.undo.rows import Row


@dataclass(slots=True)
class Subject:
    """An act that changes its state once all the rows it needs have been reversed.

    With `part` these of its resources alone were taken back and are to be brought again. It is not `whole`
    where rows that it would need as well were not asked for. `again` names what a redo that is taken back had
    found done already, and what is to be seen to when that redo is done again.
    """

    row: Row
    needs: frozenset[str]
    part: tuple[str, ...] = ()
    whole: bool = True
    again: frozenset[str] = frozenset()


@dataclass(slots=True)
class Chosen:
    """Rows to reverse, newest first; the acts behind them; and the state that these get.

    `already` lists acts that have the wanted state without doing anything. `stuck` names rows that can't be
    reversed, with the reason. `left` names rows for which nothing is to be run, since the undo to be reversed
    had nothing to do for them, with the versions that it found. `only` holds what was asked for of rows,
    where that is not all.
    """

    rows: list[Row] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    sets: str = "undone"
    already: list[Row] = field(default_factory=list)
    stuck: dict[str, str] = field(default_factory=dict)
    left: dict[str, dict[str, str]] = field(default_factory=dict)
    only: dict[str, frozenset[str]] = field(default_factory=dict)

    def acts(self) -> dict[str, Row]:
        """The act behind each row, by the row's id."""
        return {need: subject.row for subject in self.subjects for need in subject.needs}

    def standing(self, row: Row, act: Row) -> list[Touched]:
        """What of a row is there to be reversed: to undo, what was not taken back by itself before."""
        if row.id in self.left:
            return [item for item in row.touched if item.resource in self.left[row.id]]
        if self.sets != "undone" or not act.taken:
            return row.touched
        return [item for item in row.touched if item.resource not in act.taken]

    def asked(self, row: Row, act: Row) -> list[Touched]:
        """What of that was asked for."""
        found, only = self.standing(row, act), self.only.get(row.id)
        return found if only is None else [item for item in found if item.resource in only]

    def narrow(self, only: Collection[str]) -> None:
        """Keep to these resources and what lies in them."""
        acts = self.acts()
        for row in self.rows:
            found = self.standing(row, acts.get(row.id, row))
            self.only[row.id] = frozenset(item.resource for item in found if is_named(item.resource, only))
        self.rows = [row for row in self.rows if self.only[row.id]]
        ids = {row.id for row in self.rows}
        self.subjects = [
            replace(one, needs=one.needs & ids, whole=one.needs <= ids)
            for one in self.subjects
            if one.needs & ids
        ]

    @property
    def seen(self) -> set[int]:
        """The seqs of the rows and of the acts behind them."""
        return {row.seq for row in self.rows} | {subject.row.seq for subject in self.subjects}

    def add(self, others: Iterable[Chosen]) -> None:
        """Take other selections in, keeping the order."""
        found = {row.seq: row for row in self.rows}
        subjects = {subject.row.seq: subject for subject in self.subjects}
        for other in others:
            found |= {row.seq: row for row in other.rows}
            subjects |= {subject.row.seq: subject for subject in other.subjects}
            self.already += other.already
            self.stuck |= other.stuck
            self.left |= other.left
            self.only |= other.only
        self.rows = sorted(found.values(), key=lambda row: (-row.stands, -row.seq))
        self.subjects = [subjects[seq] for seq in sorted(subjects, reverse=True)]


def is_named(resource: str, only: Collection[str]) -> bool:
    """Whether a resource is one of these, or lies in one."""
    stem = resource.rstrip("/")
    return any(stem == name.rstrip("/") or stem.startswith(name.rstrip("/") + "/") for name in only)
