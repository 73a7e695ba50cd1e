"""Who may see an act and take it back: every kind of caller against every kind of row."""

from dataclasses import dataclass

import pytest

from takeback import NotFoundError, Scope
from takeback_core.agents.module import AgentsModule
from tests.undo.deputy import Deputy
from tests.undo.house import house

pytestmark = pytest.mark.anyio

NOBODY = "01900000-0000-7000-8000-000000000000"
ROWS = ("person", "juno", "ada", "sam", "notes", "deputy")
EVERY = frozenset(ROWS)
ROW_ACTORS = {
    "person": "cli:person",
    "juno": "mcp:agent:juno",
    "ada": "mcp:agent:ada",
    "sam": "mcp:agent:sam",  # the assistant
    "notes": "module:notes",
    "deputy": "module:deputy",
}


@dataclass(frozen=True)
class Who:
    """A caller, whether it comes through a module, and the rows that are its own."""

    label: str
    owns: frozenset[str]
    through: bool = False


CALLERS = {
    "the person": Who("cli:person", EVERY),
    "the person on another door and device": Who("web:person:phone", EVERY),
    "the person on a device": Who("cli:person:laptop", EVERY),
    "an agent": Who("mcp:agent:juno", frozenset({"juno"})),
    "the same agent over another door": Who("hook:agent:juno", frozenset({"juno"})),
    "another agent": Who("mcp:agent:ada", frozenset({"ada"})),
    "an agent that did nothing": Who("mcp:agent:zoe", frozenset()),
    "an agent named like a module": Who("mcp:agent:notes", frozenset()),
    "an agent named like a device": Who("mcp:agent:phone", frozenset()),
    "the assistant": Who("mcp:agent:sam", frozenset({"sam"})),
    "a module": Who("module:notes", frozenset({"notes"})),
    "another module": Who("module:deputy", frozenset({"deputy"})),
    "an agent through a module": Who("mcp:agent:juno", frozenset(), through=True),
    "a module through a module": Who("module:notes", frozenset(), through=True),
    "the person through a module": Who("cli:person", frozenset({"deputy"}), through=True),
}
VERBS = ("run", "redo", "show", "preview", "dependents")


@pytest.fixture
async def at(home):
    async with house(home, AgentsModule, Deputy) as opened:
        await opened.person().agents.add(name="sam", assistant=True)
        yield opened


@pytest.fixture
async def acts(at):
    """One act of every kind of actor, by actor."""
    made = {}
    for name, label in ROW_ACTORS.items():
        ctx = at.kernel.enter(label, session="shared", scope=Scope(roots=("*",)))
        made[name] = (await ctx.notes.put(key=name, value="1")).act
    return made


def asking(at, who):
    """How a caller asks: `ask(tool, **input)` answers plain values."""
    ctx = at.kernel.enter(who.label, scope=Scope(roots=("*",)) if ":agent:" in who.label else None)

    async def ask(name, **given):
        if who.through:
            return (await ctx.deputy.ask(tool=name, input=given)).answer
        return (await ctx.call(name, given)).model_dump(mode="json")

    return ask


async def use(ask, verb, act_id):
    if verb == "dependents":
        return await ask("undo.preview", id=act_id, dependents=True)
    return await ask(f"undo.{verb}", id=act_id)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("caller", CALLERS)
async def test_single_acts(at, acts, caller, verb):
    who = CALLERS[caller]
    ask = asking(at, who)
    for name, act_id in acts.items():
        if name in who.owns:
            assert await use(ask, verb, act_id)
        else:
            await answers_as_unknown(ask, verb, act_id)
    undone = {name for name in acts if await at.state(acts[name]) == "undone"}
    assert undone == (who.owns if verb == "run" else set())
    assert set(at.values) == EVERY - undone


async def answers_as_unknown(ask, verb, act_id):
    with pytest.raises(NotFoundError) as foreign:
        await use(ask, verb, act_id)
    with pytest.raises(NotFoundError) as unknown:
        await use(ask, verb, NOBODY)
    assert foreign.value.code == "undo.unknown_act"
    assert shape(foreign.value, act_id) == shape(unknown.value, NOBODY)


def shape(error, act_id):
    told = error.as_dict()
    return {**told, "message": told["message"].replace(act_id, "ID")}


@pytest.mark.parametrize("caller", CALLERS)
async def test_the_list_holds_what_may_be_taken_back(at, acts, caller):
    who = CALLERS[caller]
    listed = await asking(at, who)("undo.list")
    assert {act["id"] for act in listed["acts"]} == {acts[name] for name in who.owns}


@pytest.mark.parametrize("caller", CALLERS)
async def test_a_rewind_takes_back_what_is_ones_own(at, acts, caller):
    who = CALLERS[caller]
    outcome = await asking(at, who)("undo.rewind", session="shared")
    assert {result["id"] for result in outcome["results"]} == {acts[name] for name in who.owns}
    assert set(at.values) == EVERY - who.owns


@pytest.mark.parametrize("caller", CALLERS)
async def test_a_preview_of_a_rewind_shows_what_is_ones_own(at, acts, caller):
    who = CALLERS[caller]
    plan = (await asking(at, who)("undo.preview", session="shared"))["plan"]
    assert {step["act"] for step in plan["steps"]} == {acts[name] for name in who.owns}


@pytest.mark.parametrize("caller", CALLERS)
async def test_redo_of_what_the_person_took_back(at, acts, caller):
    who = CALLERS[caller]
    ask = asking(at, who)
    for act_id in acts.values():
        await at.person().undo.run(id=act_id)
    for name, act_id in acts.items():
        if name in who.owns:
            assert (await ask("undo.redo", id=act_id))["results"][0]["state"] == "done"
        else:
            await answers_as_unknown(ask, "redo", act_id)
    assert set(at.values) == who.owns


async def test_another_s_filters_find_nothing(at, acts):
    ask = asking(at, CALLERS["an agent"])
    assert (await ask("undo.list", agent="ada"))["acts"] == []
    assert (await ask("undo.rewind", agent="ada"))["results"] == []
    assert "ada" in at.values


async def test_an_undo_by_the_person_is_not_the_agent_s_to_take_back(at, acts):
    outcome = await at.person().undo.run(id=acts["juno"])
    await answers_as_unknown(asking(at, CALLERS["an agent"]), "run", outcome.act)


async def test_an_agent_may_redo_what_it_took_back(at, acts):
    ask = asking(at, CALLERS["an agent"])
    outcome = await ask("undo.run", id=acts["juno"])
    over_another_door = asking(at, CALLERS["the same agent over another door"])
    assert (await over_another_door("undo.redo", id=outcome["act"]))["results"][0]["state"] == "done"
    assert "juno" in at.values


async def test_the_undo_s_own_row_says_who_started_it(at, acts):
    ask = asking(at, CALLERS["the person through a module"])
    outcome = await ask("undo.run", id=acts["deputy"])
    row = await at.act(outcome["act"])
    assert (row.actor, row.actor_kind, row.via) == ("cli:person", "person", "module:deputy")
    assert (await at.act(acts["deputy"])).undone_by == "cli:person"


async def test_pinning_and_settling_are_the_person_s(at, acts):
    for verb, more in (("pin", {}), ("settle", {"happened": True}), ("gc", {})):
        for label in ("mcp:agent:juno", "module:notes"):
            with pytest.raises(NotFoundError) as refused:
                await at.kernel.enter(label).call(f"undo.{verb}", {"id": acts["juno"], **more})
            assert refused.value.code == "tool.unknown"
