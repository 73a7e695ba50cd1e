"""The router: look up, reach, validate, run, tell the audit, answer."""

from __future__ import annotations

import itertools
import logging
import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from takeback.callers import Caller
from takeback.context import Context, Scope
from takeback.errors import NotFoundError, RefusedError, TakebackError, UsageError
from takeback.holds import Holds
from takeback.outline import name_of, outline
from takeback.reach import Decision, Rules, decide
from takeback.registry import Entry, Registry
from takeback.tools import ToolSpec

if TYPE_CHECKING:
    from takeback.joint import Joint

_log = logging.getLogger("takeback.router")

# Who may start a chain under which labels. No label of a person's is ever among them: what an inverse
# may do is then never more than a module may.
CALL_AS: Mapping[str, frozenset[str]] = {"module:undo": frozenset({"module:undo"})}


class CallRecord(NamedTuple):
    """What the audit learns of one routed call; never its arguments.

    `at` is nanoseconds since the epoch, `outcome` is `ok`, `rehearsed` for a write that was none,
    `cancelled` or an error's code.
    """

    id: str
    parent: str | None
    at: int
    duration_ns: int
    caller: str
    origin: str
    tool: str
    allowed: bool
    rule: str
    reason: str
    outcome: str


class Router(Registry):
    """Routes calls between modules; the only way from one module to another."""

    def __init__(self, rules: Rules | None = None) -> None:
        super().__init__(rules)
        self.holds = Holds()
        self._sinks: list[Callable[[CallRecord], object]] = []
        self._boot = secrets.token_hex(6) + "-"
        self._numbers = itertools.count(1)

    def on_call(self, sink: Callable[[CallRecord], object]) -> Callable[[], None]:
        """Tell `sink` of every routed call, refused ones too; answers how to stop it."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def root(
        self,
        holder: Caller,
        *,
        session: str | None = None,
        turn: str | None = None,
        scope: Scope | None = None,
        deadline: float | None = None,
        dry_run: bool = False,
        present: bool = False,
    ) -> Context:
        """A context that starts a chain; for the kernel, which hands it to doors and modules."""
        label = holder.label
        return Context(
            router=self,
            id="",
            caller=label,
            origin=label,
            chain=(),
            calls=(),
            holder=label,
            session=session,
            turn=turn,
            deadline=deadline,
            dry_run=dry_run,
            scope=scope,
            confined_to=None,
            force=False,
            present=present,
            rehearsal=None,
            joint=None,
            why=(),
        )

    async def call(self, parent: Context, name: str, args: BaseModel | Mapping[str, Any]) -> Any:
        """Route one call; see `Context.call`."""
        started = time.perf_counter_ns()
        chain = (*parent.chain, parent.holder)
        entry = self._entries.get(name)
        if entry is None:
            raise self._refused(parent, name, *self._missing(parent, name))
        decision = entry.verdicts.get(chain) or self._judge(entry, chain)
        if not decision.allowed:
            raise self._refused(parent, name, decision, _unknown(name))
        number = f"{self._boot}{next(self._numbers):x}"
        outcome = "cancelled"
        gate = entry.gate
        gate.enter()
        writing = None
        try:
            self._admit(entry, parent, chain)
            if entry.writes and parent.session is not None and not parent.calls:
                self.holds.enter(parent.session, number)
                writing = parent.session
            try:
                model = entry.validate(args)
            except ValidationError as error:
                raise _invalid(entry.spec, error) from None
            result = await entry.run(
                # In the order of its fields; Context(...) would hand all of them on a second time.
                tuple.__new__(
                    Context,
                    (
                        self,
                        number,
                        parent.holder,
                        chain[0],
                        chain,
                        (*parent.calls, number),
                        entry.label,
                        parent.session,
                        parent.turn,
                        parent.deadline,
                        parent.dry_run,
                        parent.scope,
                        parent.confined_to,
                        parent.force,
                        parent.present,
                        parent.rehearsal,
                        parent.joint,
                        parent.why,
                    ),
                ),
                model,
            )
            if result.__class__ is not entry.output:
                raise TypeError(f"{name} answered with {type(result).__name__}")
            outcome = "rehearsed" if parent.dry_run and entry.spec.effect == "write" else "ok"
            return result
        except TakebackError as error:
            outcome = error.code
            raise
        except (Exception, SystemExit) as error:  # asyncio would end the whole daemon with a SystemExit
            outcome = "call.crashed"
            raise self._crashed(name, number, error) from error
        finally:
            gate.leave()
            if writing is not None:
                self.holds.leave(writing, number)
            if self._sinks:
                self._tell(parent, number, started, chain, name, decision, outcome)

    async def call_limited(
        self,
        parent: Context,
        name: str,
        args: BaseModel | Mapping[str, Any],
        *,
        as_: str | None,
        confined_to: Mapping[str, str] | None,
        force: bool,
        rehearsal: dict[str, Any] | None,
        joint: Joint | None,
    ) -> Any:
        """Route a call under another label or tighter limits; see `Context.call`."""
        limited = as_ is not None or confined_to is not None or force or joint is not None
        if limited and not _may_call_as(parent, as_):
            raise self._refused(
                parent, name, Decision(False, "not in CALL_AS", "call_as"), _as_other(parent, as_)
            )
        changed: dict[str, Any] = {"force": force or parent.force}
        if rehearsal is not None:
            changed |= {"dry_run": True, "rehearsal": rehearsal}
        if joint is not None:
            changed["joint"] = joint
        if confined_to is not None:
            inner = parent.confined_to
            changed["confined_to"] = (
                dict(confined_to) if inner is None else {r: v for r, v in confined_to.items() if r in inner}
            )
        if as_ is not None:
            changed |= {"chain": (), "holder": as_, "scope": None, "present": False, "why": ()}
        return await self.call(parent._replace(**changed), name, args)

    def _admit(self, entry: Entry, parent: Context, chain: tuple[str, ...]) -> None:
        """What the decision can't know: the module's state, the person's presence, a rehearsal."""
        spec = entry.spec
        if not entry.gate.open:
            raise _off(spec.name, self.why_off(spec.module) or "")
        if parent.dry_run and not entry.rehearses:
            raise RefusedError(
                "call.no_preview",
                f"{spec.name} can't be rehearsed, so nothing was done",
                "Call it without the dry run, or look at the log afterwards.",
            )
        # The rehearsal of a write tells what there is to say yes to; that of a read would be the read.
        rehearsed = parent.dry_run and spec.effect == "write"
        if spec.presence and not rehearsed and not (parent.present and len(chain) == 1):
            raise RefusedError(
                "call.presence",
                f"{spec.name} needs the person to be there",
                "Do it at a terminal or on the page, where it can be confirmed.",
                data={"tool": spec.name},
            )

    def _missing(self, parent: Context, name: str) -> tuple[Decision, TakebackError]:
        """What to say of a tool that isn't there; the person and our own modules hear whose it would be.

        To everybody else it is unknown, like one that is out of reach.
        """
        caller = Caller.parse(parent.holder)
        inside = caller.kind == "module" and caller.name in self._rules.builtin
        why = self.why_off(name.partition(".")[0]) if inside or caller.kind == "person" else None
        if why is not None:
            return Decision(False, why, "off"), _off(name, why)
        return decide(caller, (), None, self._rules), _unknown(name)

    def _refused(
        self, parent: Context, name: str, decision: Decision, refusal: TakebackError
    ) -> TakebackError:
        """The refusal of a call that never began, told to the audit."""
        number = f"{self._boot}{next(self._numbers):x}"
        chain = (*parent.chain, parent.holder)
        self._tell(parent, number, time.perf_counter_ns(), chain, name, decision, refusal.code)
        return refusal

    def _tell(
        self,
        parent: Context,
        number: str,
        started: int,
        chain: tuple[str, ...],
        name: str,
        decision: Decision,
        outcome: str,
    ) -> None:
        took = time.perf_counter_ns() - started
        record = CallRecord(
            number,
            parent.id or None,
            time.time_ns() - took,
            took,
            parent.holder,
            chain[0],
            name,
            decision.allowed,
            decision.rule,
            decision.reason,
            outcome,
        )
        for sink in self._sinks:
            try:
                sink(record)
            except Exception as error:  # boundary: who listens must not change what a call answers
                _log.error("%s could not take a call in: %s", name_of(sink), outline(error))

    def _crashed(self, name: str, number: str, error: BaseException) -> TakebackError:
        # The message of a stranger's exception may quote the person's data, so only its type and place go in.
        place = "".join(traceback.format_tb(error.__traceback__))
        _log.error("%s failed in call %s: %s\n%s", name, number, type(error).__name__, place)
        return TakebackError(
            "call.crashed",
            f"{name} failed unexpectedly ({type(error).__name__}, call {number})",
            "This is a fault in the module; the daemon's log has the place where it happened.",
            data={"call": number},
        )


def _may_call_as(parent: Context, as_: str | None) -> bool:
    allowed = CALL_AS.get(parent.holder)
    return allowed is not None and (as_ is None or as_ in allowed)


def _as_other(parent: Context, as_: str | None) -> TakebackError:
    return RefusedError(
        "call.as",
        f"{parent.holder} may not call as {as_ or 'itself with limits of its own'}",
        "A module calls under its own label; the kernel adds it to the chain.",
    )


def _unknown(name: str) -> TakebackError:
    # The same words whether the tool is missing or out of reach: nobody learns what others have.
    return NotFoundError(
        "tool.unknown", f"Unknown tool: {name:.200}", "`takeback tools` lists what you reach."
    )


def _off(name: str, why: str) -> TakebackError:
    because = f": {why}" if why else ""
    return TakebackError(
        "module.off",
        f"Module {name.partition('.')[0]} is not running, so {name:.200} can't be called{because}",
        "`takeback modules` lists every module, `takeback modules enable NAME` switches one on.",
        retryable=True,
    )


def _invalid(spec: ToolSpec, error: ValidationError) -> UsageError:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    told = [
        f"{'.'.join(str(part) for part in item['loc']) or 'arguments'}: {item['msg']}" for item in found[:10]
    ]
    return UsageError(
        "args.invalid",
        f"Arguments of {spec.name} are not valid: {'; '.join(told)}",
        f"It takes {', '.join(spec.input.model_fields) or 'no arguments'}.",
        data={"fields": [list(map(str, item["loc"])) for item in found[:10]]},
    )
