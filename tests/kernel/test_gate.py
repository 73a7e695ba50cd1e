"""The gate counts calls and says when the last one is out."""

import anyio
import pytest

from takeback.gate import Gate

pytestmark = pytest.mark.anyio


async def test_a_gate_is_closed_until_somebody_opens_it():
    assert not Gate().open
    assert Gate(open=True).open


async def test_drain_closes_the_gate_and_waits_for_the_last_call():
    gate = Gate(open=True)
    gate.enter()
    gate.enter()
    answers = []

    async def drain():
        answers.append(await gate.drain(60))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            tasks.start_soon(drain)
            await anyio.wait_all_tasks_blocked()
            assert not gate.open
            gate.leave()
            await anyio.wait_all_tasks_blocked()
            assert answers == []
            gate.leave()
    assert answers == [True, True]


async def test_drain_gives_up_at_its_deadline_and_says_so():
    gate = Gate(open=True)
    gate.enter()
    assert await gate.drain(0) is False
    gate.leave()
    assert await gate.drain(0) is True


async def test_a_call_that_comes_in_while_draining_is_waited_for_as_well():
    gate = Gate(open=True)
    gate.enter()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.idle)
            await anyio.wait_all_tasks_blocked()
            gate.leave()
            gate.enter()
            await anyio.wait_all_tasks_blocked()
            assert tasks.cancel_scope.cancel_called is False
            assert gate.inflight == 1
            gate.leave()
