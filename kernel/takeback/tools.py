"""Tools: what a module offers, declared once on its method."""

from __future__ import annotations

import inspect
import re
import typing
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from takeback.errors import TakebackError

Effect = Literal["read", "write"]
REACHES = frozenset({"person", "agents", "modules", "added"})
_VERB = re.compile(r"[a-z][a-z0-9_]{0,62}")
_Method = TypeVar("_Method", bound=Callable[..., Awaitable[BaseModel]])


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as its module declared it.

    `reach` says which kinds of caller may use it; `outward` that it leaves the machine and can't be
    recalled; `presence` that the person must be there now, but for the rehearsal of a write; `previews`
    that it can run with `ctx.dry_run` and report the effects it would have.
    """

    name: str
    module: str
    verb: str
    method: str
    summary: str
    input: type[BaseModel]
    output: type[BaseModel]
    effect: Effect
    reach: frozenset[str]
    outward: bool = False
    presence: bool = False
    past: bool = False
    person_only: bool = False
    previews: bool = False
    idempotent: bool = False
    destructive: bool = False

    def hints(self) -> dict[str, bool]:
        """The four MCP hints, always all of them since MCP's defaults are the worst case."""
        read = self.effect == "read"
        return {
            "readOnlyHint": read,
            "destructiveHint": self.destructive and not read,
            "idempotentHint": self.idempotent or read,
            "openWorldHint": self.outward,
        }

    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return self.input.model_json_schema()

    def output_schema(self) -> dict[str, Any]:
        """JSON schema of the answer."""
        return self.output.model_json_schema(mode="serialization")


@dataclass(frozen=True, slots=True)
class _Mark:
    effect: Effect
    reach: frozenset[str]
    flags: dict[str, bool]
    verb: str | None


def tool(
    *,
    effect: Effect,
    reach: Iterable[str],
    outward: bool = False,
    presence: bool = False,
    past: bool = False,
    person_only: bool = False,
    previews: bool = False,
    idempotent: bool = False,
    destructive: bool = False,
    name: str | None = None,
) -> Callable[[_Method], _Method]:
    """Declare a module's method `async def verb(self, ctx, args: Model) -> Model` as a tool.

    The first paragraph of its docstring is the summary. `name` overrides the verb where the method's
    own name would shadow a Python word.
    """
    flags = {
        "outward": outward,
        "presence": presence,
        "past": past,
        "person_only": person_only,
        "previews": previews,
        "idempotent": idempotent,
        "destructive": destructive,
    }

    def mark(method: _Method) -> _Method:
        method.__takeback_tool__ = _Mark(effect, frozenset(reach), flags, name)  # type: ignore[attr-defined]
        return method

    return mark


def collect(owner: type[Any], module: str) -> tuple[ToolSpec, ...]:
    """The tools that a module class declares, sorted by name; raises TakebackError `tool.declaration`."""
    own = frozenset(getattr(owner, "PERSON_ONLY", ())) | frozenset(getattr(owner, "HUMAN_ONLY", ()))
    specs = [
        _spec(owner, module, attribute, method.__takeback_tool__, own)
        for attribute, method in inspect.getmembers(owner, inspect.isfunction)
        if hasattr(method, "__takeback_tool__")
    ]
    verbs = Counter(spec.verb for spec in specs)
    if unknown := own - verbs.keys():
        raise _wrong(
            module, f"PERSON_ONLY or HUMAN_ONLY names {', '.join(sorted(unknown))}, which is no verb"
        )
    if twice := [verb for verb, count in verbs.items() if count > 1]:
        raise _wrong(module, f"{owner.__name__} has two tools with the verb {min(twice)}")
    return tuple(sorted(specs, key=lambda spec: spec.name))


def _spec(owner: type[Any], module: str, attribute: str, mark: _Mark, own: frozenset[str]) -> ToolSpec:
    method = getattr(owner, attribute)
    verb = mark.verb or attribute
    where = f"{owner.__name__}.{attribute}"
    if not _VERB.fullmatch(verb):
        raise _wrong(module, f"{where}: {verb!r} is not a verb (a-z, 0-9 and _)")
    if mark.effect not in ("read", "write"):
        raise _wrong(module, f"{where}: effect must be read or write")
    if not mark.reach or mark.reach - REACHES:
        raise _wrong(module, f"{where}: reach must be some of {', '.join(sorted(REACHES))}")
    if not inspect.iscoroutinefunction(method):
        raise _wrong(module, f"{where} is not `async def`")
    taken, given = _models(method, module, where)
    flags = {**mark.flags, "person_only": mark.flags["person_only"] or verb in own}
    return ToolSpec(
        name=f"{module}.{verb}",
        module=module,
        verb=verb,
        method=attribute,
        summary=_summary(method, module, where),
        input=taken,
        output=given,
        effect=mark.effect,
        reach=mark.reach,
        **flags,
    )


def _models(method: Any, module: str, where: str) -> tuple[type[BaseModel], type[BaseModel]]:
    try:
        hints = typing.get_type_hints(method)
    except NameError as error:
        raise _wrong(
            module, f"{where}: {error.name} of its annotations is not there at run time; import it outright"
        ) from None
    names = list(inspect.signature(method).parameters)
    taken = _model(hints.get(names[2]) if len(names) == 3 else None, "third parameter", module, where)
    if taken.model_config.get("extra") != "forbid":
        raise _wrong(module, f'{where}: {taken.__name__} must set extra="forbid"')
    return taken, _model(hints.get("return"), "return value", module, where)


def _model(found: Any, what: str, module: str, where: str) -> type[BaseModel]:
    if isinstance(found, type) and issubclass(found, BaseModel):
        return found
    raise _wrong(module, f"{where}: the {what} must be annotated with a pydantic model")


def _summary(method: Any, module: str, where: str) -> str:
    text = inspect.getdoc(method) or ""
    first = " ".join(text.split("\n\n")[0].split())
    if not first:
        raise _wrong(module, f"{where} has no docstring, so nobody could tell what it does")
    return first


def _wrong(module: str, what: str) -> TakebackError:
    return TakebackError(
        "tool.declaration", f"module {module}: {what}", "Correct the declaration of the tool."
    )
