"""The context of a call: who started it, on whose behalf, and within which limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.errors import RefusedError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from takeback.joint import Joint
    from takeback.router import Router


@dataclass(frozen=True, slots=True)
class Scope:
    """What an agent may touch: absolute folders, `database.table` names, names of upstream servers.

    The kernel carries it; the module that owns a resource checks it.
    """

    roots: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()


class Context(NamedTuple):
    """An immutable record that the kernel makes for each call; modules read it and call on through it.

    `chain` holds the labels on the way, oldest first, `caller` the last of them and `origin` the first.
    `calls` holds the ids of the routed calls around this one, oldest first, its own last.
    `holder` is the label that calls made through this context carry. `deadline` is in seconds of the
    event loop's monotonic clock. `scope` is None for a caller without limits of its own. `confined_to`
    maps each resource that may be touched to the version it must have now. `force` and `present`
    say that the person asked to overwrite, and is there. `rehearsal` is one dict for all steps of a plan:
    an owner that is rehearsed notes in it what its resources would be like, and looks there first. `joint` is
    what all steps of a plan change together, in a rehearsal too; an owner whose database has transactions
    keeps one open in it, and works in that. `why` are
    reasons that a module gave for what it called; the log shows them with the acts, and they decide nothing.
    """

    router: Router
    id: str
    caller: str
    origin: str
    chain: tuple[str, ...]
    calls: tuple[str, ...]
    holder: str
    session: str | None
    turn: str | None
    deadline: float | None
    dry_run: bool
    scope: Scope | None
    confined_to: Mapping[str, str] | None
    force: bool
    present: bool
    rehearsal: dict[str, Any] | None
    joint: Joint | None
    why: tuple[str, ...]

    def call(
        self,
        tool: str,
        args: BaseModel | Mapping[str, Any] | None = None,
        /,
        *,
        as_: str | None = None,
        confined_to_: Mapping[str, str] | None = None,
        force_: bool = False,
        rehearsal_: dict[str, Any] | None = None,
        joint_: Joint | None = None,
        why_: str = "",
        **kwargs: Any,
    ) -> Awaitable[Any]:
        """Call a tool by name with a model, a mapping or keywords; the answer is the tool's output model.

        `as_` starts a new chain under another label, `confined_to_` and `force_` set those limits, `joint_`
        is what the call changes things in: only for modules in the router's CALL_AS table. `rehearsal_` makes
        it a dry run that reads and notes what earlier steps would have done; nothing turns a dry run off
        again. `why_` adds a reason to every act that is recorded within the call.
        Raises NotFoundError `tool.unknown`, UsageError `args.invalid`, and what the tool raises.
        """
        if args is None:
            args = kwargs
        elif kwargs:
            args = {**_as_mapping(args), **kwargs}
        ctx = self._replace(why=(*self.why, why_)) if why_ else self
        if as_ is None and confined_to_ is None and not force_ and rehearsal_ is None and joint_ is None:
            return ctx.router.call(ctx, tool, args)
        return ctx.router.call_limited(
            ctx,
            tool,
            args,
            as_=as_,
            confined_to=confined_to_,
            force=force_,
            rehearsal=rehearsal_,
            joint=joint_,
        )

    def confine(self, resource: str) -> None:
        """Refuse a resource that an undone act never touched; raises RefusedError `scope.confined`."""
        if self.confined_to is not None and resource not in self.confined_to:
            raise RefusedError(
                "scope.confined",
                f"{resource} is not among the resources that the act touched",
                "An inverse may change only what its act changed. Nothing was changed.",
                data={"resource": resource},
            )

    def __getattr__(self, module: str) -> Verbs:
        if module.startswith("_"):
            raise AttributeError(module)
        return Verbs(self, module)


class Verbs:
    """`ctx.<module>`: each attribute is a call of that module's verb through the same context."""

    __slots__ = ("_ctx", "_module")

    def __init__(self, ctx: Context, module: str) -> None:
        self._ctx = ctx
        self._module = module

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        ctx, tool = self._ctx, f"{self._module}.{verb}"

        def call(args: BaseModel | Mapping[str, Any] | None = None, /, **kwargs: Any) -> Awaitable[Any]:
            return ctx.call(tool, args, **kwargs)

        return call


def _as_mapping(args: BaseModel | Mapping[str, Any]) -> Mapping[str, Any]:
    return args if isinstance(args, Mapping) else args.model_dump(exclude_unset=True)
