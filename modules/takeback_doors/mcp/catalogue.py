"""The tools an agent is shown, worked out once for each change of what it reaches."""

from __future__ import annotations

from typing import Any, NamedTuple

from takeback import ToolSpec
from takeback.router import Router

_MOST_LABELS = 1024


class Page(NamedTuple):
    """What one label reaches: the specs, their names, and the answer to `tools/list`."""

    generation: int
    specs: tuple[ToolSpec, ...]
    names: frozenset[str]
    answer: dict[str, Any]


class Catalogue:
    """Tool lists by label, kept until the router says that something changed."""

    def __init__(self, tools: Router) -> None:
        self._tools = tools
        self._pages: dict[str, Page] = {}
        self._wires: dict[ToolSpec, dict[str, Any]] = {}

    def page(self, label: str) -> Page:
        """What a label reaches now."""
        page = self._pages.get(label)
        if page is None or page.generation != self._tools.generation:
            page = self._look(label)
        return page

    def _look(self, label: str) -> Page:
        if len(self._pages) >= _MOST_LABELS:
            self._pages.clear()
            self._wires.clear()
        generation = self._tools.generation
        specs = tuple(self._tools.reachable(label))
        # It depends on the token, so no cache may share it, and may change at any time.
        answer = {
            "resultType": "complete",
            "tools": [self._wire(spec) for spec in specs],
            "ttlMs": 0,
            "cacheScope": "private",
        }
        page = Page(generation, specs, frozenset(spec.name for spec in specs), answer)
        self._pages[label] = page
        return page

    def _wire(self, spec: ToolSpec) -> dict[str, Any]:
        wire = self._wires.get(spec)
        if wire is None:
            wire = self._wires[spec] = {
                "name": spec.name,
                "title": f"{spec.module}: {spec.verb.replace('_', ' ')}",
                "description": spec.summary,
                "inputSchema": spec.input_schema(),
                "outputSchema": spec.output_schema(),
                "annotations": spec.hints(),
            }
        return wire
