"""In one process: many taps on one act, strangers that write meanwhile, a session that goes on writing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

import anyio
import pytest

from takeback.errors import ConflictError, TakebackError
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule
from tests.rows.proof.invariants import require_agreement, require_settled, require_whole
from tests.rows.proof.persons import Person
from tests.rows.proof.stage import LONG_AGO, Stage, stage

pytestmark = pytest.mark.anyio
_TAPS = 200


@pytest.fixture
async def opened(tmp_path, person):
    async with stage(tmp_path / "home", tmp_path / "files", modules=[UndoModule, RowsModule]) as made:
        await made.connect({"main": person})
        yield made


async def _patiently(call: Callable[[], Awaitable[object]], went: Counter[str]) -> None:
    """Tries again for as long as it is told to."""
    while True:
        try:
            await call()
        except TakebackError as error:
            if not error.retryable:
                raise
            went[error.code] += 1
            await anyio.lowlevel.checkpoint()
        else:
            return


async def _require_truth(opened: Stage, person: Person) -> None:
    rows = await opened.rows()
    require_settled(rows)
    require_agreement(rows, {"main": person.journal()})


@contextmanager
def _stranger(person: Person, statement: str) -> Iterator[list[int]]:
    """A program that says the same again and again, as fast as it can look around; how often it was heard."""
    stop, begun, heard = threading.Event(), threading.Event(), [0]

    def write() -> None:
        with closing(person.connect()) as db:
            while not stop.is_set():
                db.execute(statement)
                heard[0] += 1
                begun.set()
                person.dump()  # who only ever writes to a file lets nobody else

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(20)
        yield heard
    finally:
        stop.set()
        thread.join()


async def test_of_many_taps_one_undoes(opened, person):
    before, dump = person.rows(), person.dump()
    done = await opened.agent().rows.delete(table="account", key=1)
    outcomes = []

    async def tap() -> None:
        outcomes.append(await opened.person().undo.run(id=done.act))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(_TAPS):
                tasks.start_soon(tap)
    assert len(outcomes) == _TAPS
    assert {result.state for outcome in outcomes for result in outcome.results} == {"undone"}
    assert len({outcome.act for outcome in outcomes if outcome.act is not None}) == 1
    assert person.dump() == dump
    journal = person.journal()
    assert [entry["kind"] for entry in journal] == ["act", "undo"]
    await _require_truth(opened, person)
    require_whole(journal, before, person.rows())


async def test_what_a_stranger_writes_while_an_act_is_taken_back_is_never_lost(opened, person):
    done = await opened.agent().rows.update(table="account", key=1, set={"owner": "eve"})
    went: Counter[str] = Counter()
    with _stranger(person, "UPDATE account SET balance = balance + 1 WHERE id = 1") as heard:
        for number in range(30):
            tool = opened.person().undo.redo if number % 2 else opened.person().undo.run
            try:
                await tool(id=done.act)
            except TakebackError as error:
                if not error.retryable:
                    raise
                went[error.code] += 1
            else:
                went["done"] += 1
    assert went["done"] > 2, went
    assert person.sql("SELECT balance FROM account WHERE id = 1") == [(100 + heard[0],)]
    assert {row["state"] for row in await opened.rows() if row["role"] == "act"} <= {"done", "undone"}
    await _require_truth(opened, person)


async def test_a_stranger_who_wants_the_same_column_keeps_it(opened, person):
    """Whoever comes second sees what the first has written: it is given back, or it is a conflict."""
    agent = opened.agent()
    for number in range(15):
        done = await agent.rows.update(table="memo", key="m2", set={"body": f"agent {number}"})
        ready, go = threading.Event(), threading.Event()

        def write(ready=ready, go=go, number=number) -> None:
            with closing(person.connect()) as db:
                ready.set()
                go.wait(20)
                db.execute(f"UPDATE memo SET body = 'stranger {number}' WHERE id = 'm2'")

        thread = threading.Thread(target=write)
        thread.start()
        assert ready.wait(20)
        go.set()
        with suppress(ConflictError):
            await opened.person().undo.run(id=done.act)
        await anyio.to_thread.run_sync(thread.join)
        assert person.sql("SELECT body FROM memo WHERE id = 'm2'") == [(f"stranger {number}",)]
    await _require_truth(opened, person)


async def test_a_session_that_writes_while_it_is_rewound_is_wholly_before_or_after(opened, person):
    first, dump = person.rows(), person.dump()
    went: Counter[str] = Counter()

    async def write(writer: int) -> None:
        for number in range(writer * 100, writer * 100 + 5):
            row = {"account": 1, "number": 100 + number, "what": str(number)}
            await _patiently(partial(opened.agent().call, "rows.insert", table="line", row=row), went)

    async def rewind() -> None:
        for _ in range(3):
            await _patiently(lambda: opened.person().undo.rewind(session="s1"), went)
            went["rewound"] += 1

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, 1)
            tasks.start_soon(rewind)
            for writer in range(2, 8):
                tasks.start_soon(write, writer)
    assert went["session.busy"] or went["session.held"], went
    standing = [row for row in await opened.rows() if row["role"] == "act" and row["state"] == "done"]
    assert len(person.sql("SELECT 1 FROM line WHERE number >= 100")) == len(standing)
    await _require_truth(opened, person)
    require_whole(person.journal(), first, person.rows())
    await opened.person().undo.rewind(since=LONG_AGO)
    assert person.dump() == dump
