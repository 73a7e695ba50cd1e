"""A template: where a file goes, from the parts of its name and its date."""

from __future__ import annotations

import os
import string
from datetime import date

from takeback.errors import RefusedError, UsageError
from takeback_acts.watchers.names import shown

FIELDS = ("name", "stem", "suffix", "date", "year", "month", "day")
_SAMPLE = "name.suffix"


class Template:
    """A path within a root such as `{year}/{stem}{suffix}`; `{{` and `}}` stand for braces.

    Raises UsageError `watchers.template` when it could never lead to a file within the root.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = _parse(text)
        if not _is_within(self._filled(_SAMPLE, date.min)):
            raise _wrong(text, "leads outside the rule's root, or to no file in it")

    def fill(self, name: str, day: date) -> str:
        """The path, relative to the root, for a file of this name and date.

        Raises RefusedError `watchers.target` when this name would lead outside the root.
        """
        path = self._filled(name, day)
        if not _is_within(path):
            raise RefusedError(
                "watchers.target",
                f"For {shown(name)} the target {self.text:.200} leads outside the root, or to no file in it",
                "Write the target so that every part of the path has a name.",
            )
        return path

    def _filled(self, name: str, day: date) -> str:
        values = _values(name, day)
        return "".join(literal + values.get(field, "") for literal, field in self._parts)


def _parse(text: str) -> list[tuple[str, str]]:
    """Literal text, each with the field behind it; an empty field is none.

    Fields are looked up by name and nothing else: no attribute, index or format of Python's is let in.
    """
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError:
        raise _wrong(text, "has a brace without its other half") from None
    for _, field, form, conversion in parsed:
        if field is not None and (field not in FIELDS or form or conversion):
            raise _wrong(text, f"has the unknown part {{{field}}}")
    return [(literal, field or "") for literal, field, _, _ in parsed]


def _values(name: str, day: date) -> dict[str, str]:
    stem, suffix = os.path.splitext(name)
    return {
        "name": name,
        "stem": stem,
        "suffix": suffix,
        "date": day.isoformat(),
        "year": f"{day.year:04d}",
        "month": f"{day.month:02d}",
        "day": f"{day.day:02d}",
    }


def _is_within(path: str) -> bool:
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def _wrong(text: str, why: str) -> UsageError:
    fields = ", ".join(f"{{{field}}}" for field in FIELDS)
    return UsageError(
        "watchers.template",
        f"The target {text:.200} {why}",
        f"Write a path within the root, such as {{year}}/{{name}}; its parts are {fields}.",
    )
