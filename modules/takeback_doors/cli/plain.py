"""Text that is safe to show on a terminal."""

from __future__ import annotations

from takeback_doors.cli.paths import of_resource


def visible(text: str) -> str:
    """The text on one line, with every control, bidi, invisible or broken character written as an escape.

    A file's name may hold anything; on a terminal it could move the cursor, or read in another order
    than it is. Newlines and tabs are escaped as well.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def resource_name(uri: str) -> str:
    """A resource as a person writes it: a file's whole path instead of its URI, safe to show."""
    return visible(of_resource(uri) or uri)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
