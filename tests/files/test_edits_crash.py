"""The process is killed between any two steps around somebody else's edit: the edit can be taken back."""

import os
import signal

import anyio
import pytest

from takeback import faults
from takeback.context import Scope
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule

pytestmark = pytest.mark.anyio

_PLACES = [
    "files.edit_begun",
    "undo.recording",
    "undo.recorded",
    "undo.confirming",
    "files.edit_recorded",
    "store.committed",
]


def _kernel(base):
    return Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule])


def _agent(kernel, base):
    root = str(base / "root")
    ctx = kernel.enter("mcp:agent:juno", session="s", turn="t", scope=Scope(roots=(root,)))
    return ctx._replace(chain=(ctx.holder,), holder="module:files")


async def _edit(base, place, phase):
    def die(name):
        if name == place:
            os.kill(os.getpid(), signal.SIGKILL)

    path = base / "root" / "a.txt"
    async with _kernel(base) as kernel:
        agent = _agent(kernel, base)
        if phase == "begin":
            faults.install(die)
        await agent.files.begin_edit(id="e", paths=[str(path)], tool="Edit")
        path.write_text("two\n")
        if phase == "end":
            faults.install(die)
        await agent.files.end_edit(id="e")


def _in_fork(base, place, phase):
    child = os.fork()
    if child == 0:
        try:
            anyio.run(_edit, base, place, phase)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("phase", ["begin", "end"])
@pytest.mark.parametrize("place", _PLACES)
def test_a_killed_process_loses_no_edit(tmp_path, place, phase):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    status = _in_fork(tmp_path, place, phase)
    assert os.WIFSIGNALED(status) or phase == "begin" or place == "files.edit_begun"
    edited = (root / "a.txt").read_text() == "two\n"
    anyio.run(_settle, tmp_path, edited)
    assert (root / "a.txt").read_text() == "one\n"


async def _settle(base, edited):
    async with _kernel(base) as kernel:
        agent, person = _agent(kernel, base), kernel.enter("cli:person")
        acts = (await person.undo.list()).acts
        if edited and not acts:
            # Nobody has recorded it yet; whoever knows the edit ends it.
            await agent.files.end_edit(id="e", interrupted=True)
            acts = (await person.undo.list()).acts
        for act in acts:
            await person.undo.run(id=act.id)
        assert len(acts) == edited
