"""Reach: who may call what, and why not."""

import itertools
from dataclasses import replace

import pytest

from takeback import Caller
from takeback.reach import Decision, Rule, Rules, decide
from takeback.tools import REACHES, ToolSpec, collect
from tests.kernel.samples import EchoModule

TOOLS = {spec.verb: spec for spec in collect(EchoModule, "echo")}
RULES = Rules(
    builtin=frozenset({"files", "undo"}),
    trusted=frozenset({"friend"}),
    calls=(("files", ("*",)), ("undo", ("*",)), ("friend", ("*",)), ("stranger", ("*",)), ("mute", ())),
)
PERSON, AGENT = "cli:person", "mcp:agent:juno"


def ask(label: str, tool: ToolSpec | None, chain: tuple[str, ...] = (), rules: Rules = RULES) -> Decision:
    return decide(Caller.parse(label), chain, tool, rules)


@pytest.mark.parametrize(
    ("label", "reached"),
    [
        (
            PERSON,
            {
                "all",
                "person",
                "own",
                "there",
                "foretold",
                "secret",
                "blind",
                "rehearsed",
                "crash",
                "wrong_answer",
            },
        ),
        (AGENT, {"all", "agents", "blind", "rehearsed", "crash", "wrong_answer"}),
        ("module:files", {"all", "modules", "there"}),
        ("module:friend", {"all", "modules", "there"}),
        ("module:stranger", {"all"}),
        ("module:mute", set[str]()),
        ("module:nobody", set[str]()),
    ],
)
def test_each_kind_of_caller_reaches_what_is_open_to_it(label: str, reached: set[str]) -> None:
    assert {verb for verb, spec in TOOLS.items() if ask(label, spec).allowed} == reached


def test_every_decision_has_a_reason_and_a_rule() -> None:
    labels = [PERSON, AGENT, "module:files", "module:friend", "module:stranger", "module:mute"]
    for label, spec in itertools.product(labels, [*TOOLS.values(), None]):
        decision = ask(label, spec)
        assert decision.reason
        assert decision.rule


def test_nobody_borrows_a_modules_reach() -> None:
    """Agent A calls module M, which calls tool T: refused unless A may reach T."""
    open_to_modules = replace(TOOLS["all"], reach=frozenset({"person", "modules"}))
    assert ask("module:files", open_to_modules).allowed
    assert ask("module:files", open_to_modules, (PERSON,)).allowed
    refused = ask("module:files", open_to_modules, (AGENT,))
    assert not refused.allowed
    assert refused.rule == "chain"
    assert AGENT in refused.reason
    assert not ask("module:files", open_to_modules, (PERSON, AGENT)).allowed
    assert not ask("module:files", open_to_modules, (AGENT, "module:undo")).allowed


def test_plumbing_answers_to_the_module_that_calls_it() -> None:
    assert ask("module:files", TOOLS["modules"], (AGENT,)).allowed
    assert not ask("module:stranger", TOOLS["modules"], (AGENT,)).allowed


def test_an_added_module_in_the_chain_lends_nothing() -> None:
    """A stranger that calls a built-in module reaches through it no more than by itself."""
    inner = replace(TOOLS["all"], reach=frozenset({"modules", "person"}))
    assert not ask("module:files", inner, ("module:stranger",)).allowed
    assert ask("module:files", inner, ("module:friend",)).allowed


def test_person_only_holds_for_everybody_else_whatever_the_reach_says() -> None:
    for label in (AGENT, "module:files", "module:echo"):
        assert not ask(label, TOOLS["own"]).allowed
    assert ask(PERSON, TOOLS["own"]).allowed
    assert not ask("module:files", TOOLS["own"], (PERSON,)).allowed


def test_deny_beats_ask_beats_allow() -> None:
    deny = Rule("deny", "mcp:agent:*", "echo.*", "not with these")
    wait = Rule("ask", "mcp:agent:juno", "echo.all", "ask me")
    asked = ask(AGENT, TOOLS["all"], rules=replace(RULES, rules=(wait,)))
    assert not asked.allowed
    assert asked.reason.startswith("ask me")
    both = ask(AGENT, TOOLS["all"], rules=replace(RULES, rules=(wait, deny)))
    assert both.reason == "not with these"
    assert ask(PERSON, TOOLS["all"], rules=replace(RULES, rules=(wait, deny))).allowed


def test_a_rule_against_an_agent_holds_through_modules() -> None:
    deny = replace(RULES, rules=(Rule("deny", "mcp:agent:juno", "echo.modules", "no"),))
    assert not ask("module:files", TOOLS["modules"], (AGENT,), deny).allowed
    assert ask("module:files", TOOLS["modules"], ("mcp:agent:other",), deny).allowed


def test_no_reach_means_no_caller() -> None:
    """Nothing is allowed by default: a tool that is open to one kind is closed to all others."""
    labels = {"person": PERSON, "agents": AGENT, "modules": "module:files", "added": "module:stranger"}
    for group in REACHES:
        spec = replace(TOOLS["all"], reach=frozenset({group}))
        allowed = {name for name, label in labels.items() if ask(label, spec).allowed}
        assert allowed == ({group} if group != "added" else {"added", "modules"})
