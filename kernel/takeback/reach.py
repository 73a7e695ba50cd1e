"""Reach: one pure function that decides who may call what, and says why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from takeback.callers import Caller
from takeback.manifest import covers
from takeback.tools import ToolSpec

PLUMBING = frozenset({"modules"})


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the person's own: deny or ask for callers and tools that match two glob patterns."""

    effect: Literal["deny", "ask"]
    caller: str
    tool: str
    reason: str

    def matches(self, caller: str, tool: str) -> bool:
        """Whether the rule speaks of this caller and this tool."""
        return fnmatchcase(caller, self.caller) and fnmatchcase(tool, self.tool)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the decision rests on: which modules are built in or trusted, what each may call, rules."""

    builtin: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()
    calls: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call is allowed, the reason in words, and the name of the rule that decided."""

    allowed: bool
    reason: str
    rule: str


def decide(caller: Caller, chain: Iterable[str], tool: ToolSpec | None, rules: Rules) -> Decision:
    """Decide whether `caller`, at the end of `chain` (labels, oldest first), may call `tool`.

    Deny beats ask beats allow and nothing is allowed by default. Everybody earlier in the chain must
    reach the tool as well, so that no caller borrows a module's reach; tools of reach *modules* alone
    are plumbing that answers to the module calling it, and are exempt.
    """
    if tool is None:
        return Decision(False, "no running module offers a tool of that name", "unknown")
    if denied := _person_rules((*chain, caller.label), tool, rules):
        return denied
    decision = _by_kind(caller, tool, rules)
    if not decision.allowed or tool.reach == PLUMBING:
        return decision
    for label in chain:
        if label == caller.label:
            continue
        earlier = _by_kind(Caller.parse(label), tool, rules, ends_chain=False)
        if not earlier.allowed:
            return Decision(False, f"{label} started or passed on this call: {earlier.reason}", "chain")
    return decision


def _person_rules(labels: Iterable[str], tool: ToolSpec, rules: Rules) -> Decision | None:
    found = [rule for rule in rules.rules for label in labels if rule.matches(label, tool.name)]
    for effect in ("deny", "ask"):
        for rule in found:
            if rule.effect == effect:
                needs = "" if effect == "deny" else " (asking is not possible yet, so it is refused)"
                return Decision(False, rule.reason + needs, f"{effect} {rule.caller} {rule.tool}")
    return None


def _by_kind(caller: Caller, tool: ToolSpec, rules: Rules, *, ends_chain: bool = True) -> Decision:
    if tool.person_only and caller.kind != "person":
        return Decision(False, f"{tool.name} is for the person alone", "person_only")
    if caller.kind == "module":
        return _module(caller.name or "", tool, rules, ends_chain)
    group = "person" if caller.kind == "person" else "agents"
    if group in tool.reach:
        return Decision(True, f"{tool.name} is open to {group}", f"reach {group}")
    return Decision(False, f"{tool.name} is not open to {group}", f"reach {group}")


def _module(name: str, tool: ToolSpec, rules: Rules, ends_chain: bool) -> Decision:
    if name == tool.module:
        return Decision(True, "a module may call its own tools", "own")
    inside = name in rules.builtin or name in rules.trusted
    if not inside and "added" not in tool.reach:
        reason = (
            f"module {name} was added and the person has not trusted it; {tool.name} is not open to added"
        )
        return Decision(False, reason, "reach added")
    if inside and not tool.reach & {"modules", "added"}:
        return Decision(False, f"{tool.name} is not open to modules", "reach modules")
    # What a module may pass on is its caller's affair; its manifest limits what it calls by itself.
    if ends_chain and not _declared(name, tool.name, rules):
        return Decision(
            False, f"the manifest of module {name} does not list {tool.name} in calls", "manifest"
        )
    group = "modules" if inside else "added"
    return Decision(True, f"{tool.name} is open to {group}", f"reach {group}")


def _declared(name: str, tool: str, rules: Rules) -> bool:
    return any(module == name and covers(patterns, tool) for module, patterns in rules.calls)
