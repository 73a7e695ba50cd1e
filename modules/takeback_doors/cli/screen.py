"""What people see: tables that fit the terminal, colours only where they are wanted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from takeback_doors.cli.plain import visible

_STYLES = {
    "done": "green",
    "clean": "green",
    "running": "green",
    "active": "green",
    "merge": "cyan",
    "undone": "cyan",
    "pending": "yellow",
    "undoing": "yellow",
    "dependents": "yellow",
    "expired": "yellow",
    "failed": "red",
    "conflict": "red",
    "gone": "red",
    "unknown": "magenta",
}

_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: no markup, no emoji names, no guessing what to colour."""
    return Console(file=sys.stderr if stderr else sys.stdout, markup=False, emoji=False, highlight=False)


def text(words: object, style: str = "") -> Text:
    """Words from anywhere, safe to show."""
    return Text(visible(str(words)), style=style)


def state(name: str) -> Text:
    """A state or a status in its colour."""
    return text(name.replace("_", " "), _STYLES.get(name, "dim"))


def table(columns: Sequence[str], rows: Iterable[Sequence[Text | str]], *, wide: str) -> Table:
    """A table without lines; the column named `wide` takes what width is left and folds."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        made.add_column(name, no_wrap=name != wide, overflow="fold", ratio=1 if name == wide else None)
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else text(cell) for cell in row))
    return made


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Text | str]], *, wide: str, none: str) -> None:
    """Print a table, or on stderr the words `none` where there are no rows."""
    if rows:
        console().print(table(columns, rows, wide=wide))
    else:
        console(stderr=True).print(text(none))


def show_listing(rows: Iterable[tuple[Text, Text]]) -> None:
    """Print a word and what it is about, a line each; what is too long goes on below itself."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for row in rows:
        made.add_row(*row)
    console().print(made)


def show_fields(fields: Iterable[tuple[str, Text | str]]) -> None:
    """Print names and values below each other; a value that is empty is left out."""
    show_listing(
        (text(name, "bold"), value if isinstance(value, Text) else text(value))
        for name, value in fields
        if value
    )


def show_diff(changes: str) -> None:
    """Print changes in the unified form: in colour on a terminal, and as they are where a program reads."""
    if not sys.stdout.isatty():
        sys.stdout.write(changes)
        return
    out = console()
    for line in changes.splitlines():
        # What a file holds must not steer the terminal.
        shown = "\t".join(visible(part) for part in line.split("\t"))
        out.print(Text(shown, style=_DIFF.get(line[:1], "")), soft_wrap=True)
