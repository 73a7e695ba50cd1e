"""What the person is asked before power is given: the words say exactly what would be."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from takeback_doors.cli.plain import visible

_Shapes = Sequence[dict[str, Any]]


class Question(NamedTuple):
    """A question, safe to show, and what is to be shown before it, if anything."""

    text: str
    about: str = ""


def question(tool: str, inputs: _Shapes, rehearsed: _Shapes) -> Question:
    """What to ask before a tool is called with these inputs; `rehearsed` is what it said it would answer."""
    if (words := _WORDS.get(tool)) is not None:
        return Question(visible(words(inputs, rehearsed)))
    about = "\n".join(visible(json.dumps(given, ensure_ascii=False)) for given in inputs)
    return Question(f"Call {visible(tool)} with this?", about)


def _grant(inputs: _Shapes, rehearsed: _Shapes) -> str:
    *first, last = [given.get("root") or _table(given["table"]) for given in inputs]
    return f"Let {inputs[0]['name']} touch {', '.join(first)}{' and ' if first else ''}{last}?"


def _table(name: str) -> str:
    return f"every table of {name[:-2]}" if name.endswith(".*") else f"the table {name}"


def _enable(inputs: _Shapes, rehearsed: _Shapes) -> str:
    module = rehearsed[0]
    if module["builtin"]:
        return f"Switch the module {module['name']} on, now and at every start?"
    whose = "is no part of takeback and can do all that you can"
    return f"Run the module {_added(module)}, which {whose}, now and at every start?"


def _disable(inputs: _Shapes, rehearsed: _Shapes) -> str:
    return f"Switch the module {rehearsed[0]['name']} off, now and at every start?"


def _trust(inputs: _Shapes, rehearsed: _Shapes) -> str:
    return f"Let the module {_added(rehearsed[0])} use what only modules may use?"


def _added(module: dict[str, Any]) -> str:
    return f"{module['name']} of {module['distribution']}" if module["distribution"] else str(module["name"])


_WORDS: dict[str, Callable[[_Shapes, _Shapes], str]] = {
    "agents.grant": _grant,
    "kernel.enable": _enable,
    "kernel.disable": _disable,
    "kernel.trust": _trust,
}
