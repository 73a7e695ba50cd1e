"""Resources: URIs of their owner module, and which of them lie within each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def owner(resource: str) -> str:
    """The module that owns a resource."""
    return resource.partition(":")[0]


def beneath(resource: str) -> tuple[str, str]:
    """The half-open range of everything beneath a resource, in the order of its characters."""
    stem = resource.rstrip("/")
    return stem + "/", stem + "0"  # "0" is the character after "/"


def trees_around(resource: str) -> list[str]:
    """The contents of every folder that a resource lies in, itself excepted."""
    head, _, path = resource.partition(":")
    parts = path.rstrip("/").split("/")
    found = [f"{head}:{'/'.join(parts[:n])}/" for n in range(1, len(parts))]
    return [tree for tree in found if tree != resource]


def other_name(resource: str) -> str:
    """The entry of a resource that is one by itself (`/.`), and the other way round."""
    return resource[:-2] if resource.endswith("/.") else f"{resource}/."


def related(one: str, other: str) -> bool:
    """Whether a change of one may be a change of the other."""
    if one == other:
        return True
    low, high = beneath(one)
    if low <= other < high:
        return True
    return other.endswith("/") and one.startswith(other)


class Places:
    """Resources, by which it is told at once whether another one lies in one of them or around one."""

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._above: set[str] = set()

    def add(self, names: Iterable[str]) -> None:
        """Take resources in."""
        for name in names:
            self._own.add(name.rstrip("/"))
            self._above.update(_around(name))

    def meets(self, name: str) -> bool:
        """Whether a change of a resource may be a change of one of these, or the other way round."""
        stem = name.rstrip("/")
        return stem in self._own or stem in self._above or not self._own.isdisjoint(_around(name))


def _around(name: str) -> Iterator[str]:
    stem = name.rstrip("/")
    while "/" in stem:
        stem = stem.rpartition("/")[0].rstrip("/")
        yield stem
