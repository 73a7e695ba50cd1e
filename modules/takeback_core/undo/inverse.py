"""What may stand as an inverse: checked when it is recorded and again when it is run."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from takeback.callers import Caller
from takeback.errors import RefusedError
from takeback.reach import decide
from takeback.router import Router
from takeback.tools import ToolSpec

RUNS_AS = "module:undo"


class InverseCheck:
    """Refuses inverses that could be turned against the person; remembers what it found for each tool."""

    def __init__(self, tools: Router) -> None:
        self._tools = tools
        self._generation = -1
        self._passed: dict[str, ToolSpec] = {}

    def check(self, name: str, given: dict[str, Any]) -> ToolSpec:
        """The tool of an inverse; raises RefusedError with a code of its own for each ground.

        `undo.inverse_unknown`, `undo.inverse_own`, `undo.inverse_outward`, `undo.inverse_presence`,
        `undo.inverse_person_only`, `undo.inverse_untrusted`, `undo.inverse_unreachable`,
        `undo.inverse_input`.
        """
        if self._generation != self._tools.generation:
            self._passed.clear()
            self._generation = self._tools.generation
        spec = self._passed.get(name) or self._tool(name)
        try:
            spec.input.__pydantic_validator__.validate_python(given)
        except ValidationError as error:
            fields = (
                ", ".join(sorted({".".join(map(str, item["loc"])) for item in error.errors()})) or "input"
            )
            raise RefusedError(
                "undo.inverse_input",
                f"{name} does not take the recorded input (at {fields})",
                "The inverse must be input that its tool accepts.",
            ) from None
        return spec

    def _tool(self, name: str) -> ToolSpec:
        if name.partition(".")[0] == "undo":
            raise _refused("undo.inverse_own", f"{name} is one of undo's own tools")
        spec = self._tools.get(name)
        if spec is None:
            raise _refused("undo.inverse_unknown", f"no running tool is named {name}")
        if spec.outward:
            raise _refused("undo.inverse_outward", f"{name} leaves the machine and can't be recalled")
        if spec.presence:
            raise _refused("undo.inverse_presence", f"{name} needs the person to be there")
        if spec.person_only or spec.reach <= {"person"}:
            raise _refused("undo.inverse_person_only", f"{name} is the person's own")
        rules = self._tools.rules
        if spec.module not in rules.builtin | rules.trusted:
            # What an added module says of its tool (that it isn't outward, say) is its own word.
            raise _refused("undo.inverse_untrusted", f"{name} is of a module that the person has not trusted")
        decision = decide(Caller.parse(RUNS_AS), (), spec, rules)
        if not decision.allowed:
            raise _refused("undo.inverse_unreachable", f"a module may not run {name}: {decision.reason}")
        self._passed[name] = spec
        return spec


def _refused(code: str, why: str) -> RefusedError:
    return RefusedError(
        code, f"This can't be an inverse: {why}", "Record an inverse that undo may run, or the act as final."
    )
