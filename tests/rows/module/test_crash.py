"""A process that dies between any two durable steps: nothing is lost or done twice, the log is true."""

import asyncio
import os
import traceback

import pytest

from takeback import faults
from takeback.kernel import Kernel
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule
from tests.rows.module.conftest import Bench

PLACES = ("rows.", "undo.", "joint.")


async def _update(bench):
    await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust", "level": 2})


async def _delete(bench):
    await bench.agent().rows.delete(table="skill", key=1)


async def _both(bench):
    await _update(bench)
    await _delete(bench)


async def _nothing(bench):
    pass


async def _rewind(bench):
    await bench.person().undo.rewind(session="s1")


async def _redo(bench):
    await bench.person().undo.redo(id=(await bench.acts())[0].id)


async def _both_and_back(bench):
    await _both(bench)
    await _rewind(bench)


SCENARIOS = {
    "act": (_nothing, _delete),
    "rewind": (_both, _rewind),
    "redo": (_both_and_back, _redo),
}


def _kernel(base):
    return Kernel(base / "home", settings={}, modules=[UndoModule, RowsModule])


async def _tell(base, database, scenario, hook):
    before, then = SCENARIOS[scenario]
    async with _kernel(base) as kernel:
        bench = Bench(kernel, database)
        await bench.person().call("rows.connect", name="main", url=database.url)
        await before(bench)
        stop = faults.install(hook)
        await then(bench)
        stop()


def _in_fork(base, database, scenario, hook):
    """The exit code of a process that tells a scenario and may die in it."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(_tell(base, database, scenario, hook))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _dying_at(number):
    passed = []

    def die(name):
        if name.startswith(PLACES):
            passed.append(name)
            if len(passed) == number:
                os._exit(9)

    return die


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_whatever_is_cut_off_the_log_says_what_is_there(tmp_path, make, scenario):
    number, code = 0, 9
    while code == 9:
        number += 1
        base = tmp_path / str(number)
        base.mkdir()
        database = make(base)
        first = database.dump()
        code = _in_fork(base, database, scenario, _dying_at(number))
        assert code in (0, 9)
        asyncio.run(_restart(base, database, first))
        database.close()
    assert number > 5


async def _restart(base, database, first):
    """What a crash left is settled; it is all or nothing, and what stands can be taken back."""
    async with _kernel(base) as kernel:
        bench = Bench(kernel, database)
        acts = [act for act in await bench.acts() if act.role == "act"]
        assert {act.state for act in acts} <= {"done", "undone", "abandoned"}, acts
        standing = [act for act in acts if act.state == "done"]
        assert bool(standing) == (database.dump() != first)
        assert all(act.touched for act in standing)
        await bench.person().undo.rewind(session="s1")
        assert database.dump() == first
