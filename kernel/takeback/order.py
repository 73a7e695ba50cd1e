"""In which order modules start and stop, and which of them can't because they need themselves."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from takeback.manifest import Manifest


class Order:
    """The graph of what modules need, and what they only come after.

    `needs` and `after` hold a module's own edges, `after` without what is not there and without what
    would close a circle, for an order is only a wish. `cycles` says of a module that needs itself, or
    needs one that does, why it can never start.
    """

    def __init__(self, manifests: Mapping[str, Manifest]) -> None:
        self.needs = {name: manifest.needs for name, manifest in manifests.items()}
        self.cycles = self._cycles()
        self.after: dict[str, tuple[str, ...]] = dict.fromkeys(self.needs, ())
        for name in sorted(self.needs):
            for other in sorted(set(manifests[name].after) & set(self.needs)):
                if name not in self._beneath(other):
                    self.after[name] += (other,)

    def dependents(self, name: str) -> list[str]:
        """The modules that need this one directly, sorted."""
        return sorted(other for other, needs in self.needs.items() if name in needs)

    def followers(self, name: str) -> list[str]:
        """The modules that only come after this one, sorted."""
        return sorted(other for other, after in self.after.items() if name in after)

    def above(self, name: str) -> set[str]:
        """Every module that needs this one, directly or through others."""
        found: set[str] = set()
        todo = [name]
        while todo:
            new = set(self.dependents(todo.pop())) - found
            found |= new
            todo.extend(new)
        return found

    def _beneath(self, name: str) -> set[str]:
        """The module and all that must be there before it, by needs and by the order taken so far."""
        found: set[str] = set()
        todo = [name]
        while todo:
            here = todo.pop()
            if here not in found:
                found.add(here)
                todo.extend((*self.needs.get(here, ()), *self.after.get(here, ())))
        return found

    def _cycles(self) -> dict[str, str]:
        why: dict[str, str] = {}
        graph = {name: set(needs) for name, needs in self.needs.items()}
        while circle := _circle(graph):
            for at, name in enumerate(circle):
                path = " -> ".join([*circle[at:], *circle[:at], name])
                why[name] = f"needs itself through {path}"
            for name in circle:
                del graph[name]
        for member in list(why):
            for name in sorted(self.above(member) - set(why)):
                why[name] = f"needs {member}, which {why[member]}"
        return why


def _circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The names on one circle of needs, each needing the next, the first by name first; or none."""
    here = {name: needs & graph.keys() for name, needs in graph.items()}
    try:
        TopologicalSorter(here).prepare()
    except CycleError as exc:
        names: list[str] = exc.args[1][:0:-1]  # graphlib names each before what needs it
        first = names.index(min(names))
        return names[first:] + names[:first]
    return []
