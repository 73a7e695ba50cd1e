"""What the person said, so that the turns of a session can be told apart."""

import pytest

from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.sessions.module import SessionsModule
from takeback_core.undo.module import UndoModule
from takeback_doors.hooks.module import HooksModule
from tests.hooks.desk import AGENTS, SESSION, Desk

pytestmark = pytest.mark.anyio


def open_kernel(home, **settings):
    return Kernel(home, settings=settings, modules=[UndoModule, SessionsModule, FilesModule, HooksModule])


async def said(desk):
    shown = await desk.person.sessions.show(session=SESSION)
    return [(turn.text, turn.acts) for turn in shown.turns]


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_turn_shows_how_its_prompt_begins(place, root, agent):
    async with open_kernel(place / "home") as kernel:
        desk = Desk(kernel, root)
        await desk.play(agent, desk.events(agent))
        [(text, acts)] = await said(desk)
        assert (text.lower().rstrip("."), acts) == ("do it", 3)
        assert await desk.lost() == []


async def test_a_long_prompt_is_cut_and_a_broken_one_mended(place, root):
    async with open_kernel(place / "home") as kernel:
        desk = Desk(kernel, root)
        events = desk.events("claude")
        text = "\ud800" + "long " * 100_000
        await desk.play("claude", [e | {"prompt": text} if "prompt" in e else e for e in events])
        assert await said(desk) == [(("?" + "long " * 100)[:200], 3)]


async def test_nothing_of_a_prompt_is_kept_where_that_is_switched_off(place, root):
    async with open_kernel(place / "home") as kernel:
        desk = Desk(kernel, root)
        await desk.play("claude", desk.events("claude"))
    async with open_kernel(place / "home", sessions={"keep_text": False}) as kernel:
        desk = Desk(kernel, root)
        assert await said(desk) == [(None, 3)]
        await desk.play("claude", [e | {"prompt_id": "p2"} for e in desk.events("claude")[:2]])
        noted = await kernel.store.read(lambda db: db.execute("SELECT * FROM sessions_noted").fetchall())
        assert noted == []


async def test_what_is_kept_here_with_its_messages_is_not_noted_as_well(place, root):
    async with open_kernel(place / "home") as kernel:
        desk = Desk(kernel, root)
        await kernel.enter("mcp:agent:claude").sessions.open(session=SESSION)
        await desk.play("claude", desk.events("claude"))
        noted = await kernel.store.read(lambda db: db.execute("SELECT * FROM sessions_noted").fetchall())
        assert noted == []
