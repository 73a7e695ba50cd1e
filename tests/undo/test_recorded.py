"""What a module recorded on its own resources: undos too, and to an agent its own acts only."""

import pytest

from takeback import NotFoundError, UsageError
from takeback.callers import Caller
from tests.undo.model import resource

pytestmark = pytest.mark.anyio


def through(at, who):
    """The notes module, called by somebody."""
    return who._replace(chain=(who.holder,), origin=who.holder, holder="module:notes")


async def recorded(at, who, key="a", **more):
    found = await through(at, who).call("undo.recorded", resource=resource(key), **more)
    return [act.id for act in found.acts]


async def test_acts_and_undos_newest_first(at):
    first = (await at.agent().notes.put(key="a", value="1")).act
    second = (await at.agent("otto").notes.put(key="a", value="2")).act
    await at.agent().notes.put(key="b", value="1")
    outcome = await at.person().undo.run(id=second)
    found = (await at.module().call("undo.recorded", resource=resource("a"))).acts
    assert [act.id for act in found][1:] == [second, first]
    assert found[0].role == "counter"
    assert outcome.results[0].state == "undone"
    assert (found[0].touched[0].before, found[0].touched[0].after) == ("v:2", "v:1")


async def test_an_agent_hears_of_its_own_alone(at):
    own = (await at.agent().notes.put(key="a", value="1")).act
    other = (await at.agent("otto").notes.put(key="a", value="2")).act
    assert await recorded(at, at.agent()) == [own]
    assert await recorded(at, at.person()) == [other, own]
    assert await recorded(at, at.agent(), id=other) == []


async def test_pages_and_one_act(at):
    acts = [(await at.agent().notes.put(key="a", value=str(n))).act for n in range(3)]
    page = await at.module().call("undo.recorded", resource=resource("a"), limit=2)
    rest = await at.module().call("undo.recorded", resource=resource("a"), limit=2, cursor=page.next)
    assert [act.id for act in (*page.acts, *rest.acts)] == acts[::-1]
    assert rest.next is None
    assert await recorded(at, at.person(), id=acts[1]) == [acts[1]]
    with pytest.raises(UsageError) as refused:
        await at.module().call("undo.recorded", resource=resource("a"), cursor="x")
    assert refused.value.code == "undo.cursor"


async def test_what_another_module_recorded_is_not_told(at):
    await at.agent().notes.put(key="a", value="1")
    found = await at.kernel.enter(Caller.module("undo")).call("undo.recorded", resource=resource("a"))
    assert found.acts == []


async def test_it_is_for_modules_alone(at):
    for who in (at.person(), at.agent()):
        with pytest.raises(NotFoundError) as refused:
            await who.call("undo.recorded", resource=resource("a"))
        assert refused.value.code == "tool.unknown"
