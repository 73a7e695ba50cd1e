"""A folder as one thing: the log names its entry and, with a slash behind it, what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from takeback_doors.cli.paths import near, of_resource
from takeback_doors.cli.plain import visible


def as_one(found: Sequence[dict[str, Any]], *alike: str) -> list[dict[str, Any]]:
    """What is said of resources, with each folder once.

    Its entry is left out where the same is said of its content, by the keys `alike` beside `resource`.
    """
    said = {_key(each, alike) for each in found}
    return [each for each in found if (f"{each['resource']}/", *_key(each, alike)[1:]) not in said]


def name(resource: str) -> str:
    """A resource as it is called from the current folder or from the home."""
    path = of_resource(resource)
    return visible(near(path) if path else resource)


def whole_name(effect: dict[str, Any]) -> str:
    """The name of what an effect is on; of a folder's content with how much that is, where it is said."""
    called, holds = name(effect["resource"]), effect.get("holds")
    return f"{called} and {holds} entr{'y' if holds == 1 else 'ies'} in it" if holds else called


def _key(each: dict[str, Any], alike: Sequence[str]) -> tuple[Any, ...]:
    return (each["resource"], *(each.get(key) for key in alike))
