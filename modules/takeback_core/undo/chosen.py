"""What is chosen to be taken back: the rows to reverse, and the acts behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from takeback_core.undo.rows import Row


@dataclass(slots=True)
class Subject:
    """An act that changes its state once all the rows it needs have been reversed."""

    row: Row
    needs: frozenset[str]


@dataclass(slots=True)
class Chosen:
    """Rows to reverse, newest first; the acts behind them; and the state that these get.

    `already` lists acts that have the wanted state without doing anything. `stuck` names rows that can't be
    reversed, with the reason. `left` names rows for which nothing is to be run, since the undo to be reversed
    had nothing to do for them, with the versions that it found.
    """

    rows: list[Row] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    sets: str = "undone"
    already: list[Row] = field(default_factory=list)
    stuck: dict[str, str] = field(default_factory=dict)
    left: dict[str, dict[str, str]] = field(default_factory=dict)

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
        self.rows = sorted(found.values(), key=lambda row: (-row.stands, -row.seq))
        self.subjects = [subjects[seq] for seq in sorted(subjects, reverse=True)]
