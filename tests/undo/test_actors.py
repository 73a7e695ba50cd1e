"""The actor kind comes from the label, and an agent's name is looked up once to tell the assistant."""

from typing import ClassVar

import anyio
import pytest
from pydantic import BaseModel, ConfigDict

from takeback import Context, Manifest, Module, tool
from takeback_core.agents.module import AgentsModule
from tests.undo.house import house

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Agent(BaseModel):
    name: str
    assistant: bool


class Agents(BaseModel):
    agents: list[Agent]


class SlowAgents(Module):
    """Agents whose list takes its time."""

    manifest: ClassVar[Manifest] = Manifest(1, "agents", "Agents for tests.")
    assistant: ClassVar[str] = "sam"
    asked: ClassVar[int] = 0
    entered: ClassVar[anyio.Event]
    go: ClassVar[anyio.Event]

    @tool(effect="read", reach=("modules",), name="list")
    async def list_agents(self, ctx: Context, args: Nothing) -> Agents:
        """List the agents as they were when asked."""
        type(self).asked += 1
        found = [Agent(name=self.assistant, assistant=True), Agent(name="juno", assistant=False)]
        self.entered.set()
        await self.go.wait()
        return Agents(agents=found)


@pytest.fixture
def slow():
    class Slow(SlowAgents):
        entered = anyio.Event()
        go = anyio.Event()

    return Slow


async def kind(at, label):
    scope = at.agent().scope if ":agent:" in label else None
    made = await at.kernel.enter(label, scope=scope).notes.put(key="a", value="1")
    return (await at.act(made.act)).actor_kind


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("cli:person", "person"),
        ("web:person:phone", "person"),
        ("mcp:agent:juno", "agent"),
        ("mcp:agent:sam", "assistant"),
        ("hook:agent:sam", "assistant"),
        ("mcp:agent:stranger", "agent"),
        ("module:notes", "module"),
    ],
)
async def test_kinds(home, label, expected):
    async with house(home, AgentsModule) as at:
        await at.person().agents.add(name="sam", assistant=True)
        await at.person().agents.add(name="juno")
        assert await kind(at, label) == expected


async def test_without_the_agents_module_every_agent_is_an_agent(at):
    assert await kind(at, "mcp:agent:sam") == "agent"


async def test_with_the_agents_module_off_every_agent_is_an_agent(home):
    async with house(home, AgentsModule) as at:
        await at.person().agents.add(name="sam", assistant=True)
        await at.kernel.set_enabled("agents", False)
        assert await kind(at, "mcp:agent:sam") == "agent"
        await at.kernel.set_enabled("agents", True)
        with anyio.fail_after(10):
            while await kind(at, "mcp:agent:sam") != "assistant":
                pass


async def test_the_agents_are_asked_once(home, slow):
    slow.go.set()
    async with house(home, slow) as at:
        for label in ("mcp:agent:juno", "mcp:agent:sam", "cli:person", "mcp:agent:juno"):
            await kind(at, label)
        assert slow.asked == 1


async def test_the_agents_are_asked_once_by_many_at_the_same_time(home, slow):
    async with house(home, slow) as at, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(kind, at, "mcp:agent:juno")
        await slow.entered.wait()
        await anyio.wait_all_tasks_blocked()
        slow.go.set()
    assert slow.asked == 1


async def test_a_change_of_the_agents_is_heard(home):
    async with house(home, AgentsModule) as at:
        assert await kind(at, "mcp:agent:sam") == "agent"
        heard = anyio.Event()
        at.kernel.events.on("agents.changed", lambda seq, event: heard.set())
        await at.person().agents.add(name="sam", assistant=True)
        with anyio.fail_after(10):
            await heard.wait()
        assert await kind(at, "mcp:agent:sam") == "assistant"


async def test_an_answer_from_before_a_change_is_not_kept(home, slow):
    async with house(home, slow) as at, anyio.create_task_group() as tasks:
        tasks.start_soon(kind, at, "mcp:agent:juno")
        with anyio.fail_after(10):
            await slow.entered.wait()
        slow.assistant = "juno"
        undo = at.kernel.supervisor.lives["undo"].module
        assert undo is not None
        await undo.neighbours_changed()
        slow.go.set()
        assert await kind(at, "mcp:agent:juno") == "assistant"
    assert {row["actor_kind"] for row in await at_rows(home)} == {"assistant"}


async def at_rows(home):
    async with house(home) as at:
        return await at.rows()


async def test_what_was_recorded_keeps_its_kind(home):
    async with house(home, AgentsModule) as at:
        made = await at.agent("sam").notes.put(key="a", value="1")
        await at.person().agents.add(name="sam", assistant=True)
        assert (await at.act(made.act)).actor_kind == "agent"


async def test_an_undo_has_the_kind_of_who_asked_for_it(home):
    async with house(home, AgentsModule) as at:
        await at.person().agents.add(name="sam", assistant=True)
        made = await at.agent("sam").notes.put(key="a", value="1")
        undo = await at.agent("sam").undo.run(id=made.act)
        assert (await at.act(undo.act)).actor_kind == "assistant"
