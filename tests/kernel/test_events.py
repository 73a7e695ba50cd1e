"""Events: told after commit, kept, and resumed from."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import anyio
import pytest

from takeback import faults
from takeback.errors import TakebackError
from takeback.events import Event, Events, StoredEvent
from takeback.store import Store

pytestmark = pytest.mark.anyio


class Said(Event):
    kind: ClassVar[str] = "test.said"

    word: str


class Heard(Event):
    kind: ClassVar[str] = "test.heard"


@pytest.fixture
async def store(tmp_path):
    async with await Store.open(tmp_path / "t.db") as opened:
        yield opened


@pytest.fixture
async def events(store):
    made = Events(store)
    yield made
    await made.close()


async def _say(store, *words):
    return await store.transaction(lambda tx: [tx.emit(Said(word=word)) for word in words])


def _words(stored):
    return [event.data["word"] for event in stored]


async def test_a_listener_gets_its_kind_after_the_commit_and_before_the_caller_goes_on(store, events):
    got, every = [], []
    events.on("test.said", lambda seq, event: got.append((seq, event)))
    events.on("*", lambda seq, event: every.append(seq))
    assert await _say(store, "a", "b") == [1, 2]
    assert got == [(1, Said(word="a")), (2, Said(word="b"))]
    await store.transaction(lambda tx: tx.emit(Heard()))
    assert len(got) == 2
    assert every == [1, 2, 3]


async def test_an_event_of_an_undone_transaction_is_never_told_nor_kept(store, events):
    got = []
    events.on("*", lambda seq, event: got.append(event))

    def fail(tx):
        tx.emit(Said(word="never"))
        raise LookupError

    jobs = [store.submit(fail), store.submit(lambda tx: tx.emit(Said(word="a")))]
    with pytest.raises(LookupError):
        await jobs[0].wait()
    assert await jobs[1].wait() == 1
    assert got == [Said(word="a")]
    assert _words(await events.after(0)) == ["a"]


async def test_what_a_failed_commit_or_a_cancelled_caller_undid_is_never_told(store, events):
    got = []
    entered, release = threading.Event(), threading.Event()
    events.on("*", lambda seq, event: got.append(event.word))

    def fail(name):
        if name == "store.ran":
            raise OSError

    def slow(tx):
        tx.emit(Said(word="cancelled"))
        entered.set()
        release.wait(30)

    remove = faults.install(fail)
    try:
        with pytest.raises(OSError):
            await _say(store, "failed")
    finally:
        remove()
    task = asyncio.ensure_future(store.transaction(slow))
    await anyio.to_thread.run_sync(entered.wait)
    task.cancel()
    await anyio.wait_all_tasks_blocked()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _say(store, "a") == [1]
    assert got == ["a"]


async def test_a_listener_that_raises_harms_no_other_and_no_caller(store, events, caplog):
    got = []

    def raises(seq, event):
        raise LookupError(event.word)

    async def raises_later(seq, event):
        raise LookupError(event.word)

    events.on("test.said", raises)
    events.on("test.said", raises_later)
    events.on("test.said", lambda seq, event: got.append(seq))
    with caplog.at_level(logging.ERROR):
        assert await _say(store, "secret") == [1]
        await events.close()
    assert got == [1]
    assert caplog.text.count("test.said failed: LookupError") == 2
    assert "secret" not in caplog.text


async def test_unsubscribing_ends_one_subscription(store, events):
    got = []

    def listener(seq, event):
        got.append(seq)

    once = events.on("test.said", listener)
    events.on("test.said", listener)
    await _say(store, "a")
    once()
    once()
    await _say(store, "b")
    assert got == [1, 1, 2]


async def test_closing_waits_for_async_listeners(store, events):
    entered, release, done = asyncio.Event(), asyncio.Event(), []

    async def listener(seq, event):
        entered.set()
        await release.wait()
        done.append(seq)

    events.on("test.said", listener)
    await _say(store, "a")
    await entered.wait()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(events.close)
        await anyio.wait_all_tasks_blocked()
        assert done == []
        release.set()
    assert done == [1]


async def test_closing_does_not_wait_for_ever(store, events):
    ended = []

    async def listener(seq, event):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(seq)

    events.on("test.said", listener)
    await _say(store, "a")
    await events.close(grace=0.01)
    assert ended == [1]


async def test_an_event_is_told_although_its_caller_was_cancelled(store, events):
    got = []
    committed, release = threading.Event(), threading.Event()

    def hold(name):
        if name == "store.committed":
            committed.set()
            release.wait(30)

    events.on("test.said", lambda seq, event: got.append(event.word))
    remove = faults.install(hold)
    try:
        task = asyncio.ensure_future(_say(store, "a"))
        await anyio.to_thread.run_sync(committed.wait)
        task.cancel()
    finally:
        remove()
        release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert got == ["a"]


async def test_after_resumes_in_pages(store, events):
    await _say(store, *"abcde")
    assert _words(await events.after(0, limit=2)) == ["a", "b"]
    assert _words(await events.after(2, limit=2)) == ["c", "d"]
    assert _words(await events.after(4)) == ["e"]
    assert await events.after(5) == []
    (first,) = await events.after(0, limit=1)
    assert first == StoredEvent(1, first.at, "test.said", {"word": "a"})
    assert datetime.fromisoformat(first.at).tzinfo == UTC
    assert len(first.at) == len("2026-01-31T12:00:00.000Z")


async def test_following_misses_none_and_doubles_none_while_others_write(store, events):
    total = 300
    got = []

    async def follow(start):
        async for event in events.follow(start):
            got.append(event.seq)
            if event.seq == total:
                return

    async def write(count):
        for _ in range(count):
            await _say(store, "a")

    await _say(store, *"a" * 50)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(write, 50)
            tasks.start_soon(follow, 20)
    assert got == list(range(21, total + 1))


async def test_following_reads_more_than_a_page_of_what_was(store, events):
    await _say(store, *"a" * 250)
    following = events.follow(0)
    with anyio.fail_after(30):
        assert [(await anext(following)).seq for _ in range(250)] == list(range(1, 251))
    await following.aclose()


async def test_following_from_the_start_doubles_none_where_some_were_pruned(store, events):
    await _say(store, *"abcde")
    await events.prune(datetime.now(UTC) + timedelta(seconds=1), keep=2)
    following = events.follow(0)
    got = [(await anext(following)).seq for _ in range(2)]
    await _say(store, "f")
    with anyio.fail_after(30):
        got.append((await anext(following)).seq)
    await following.aclose()
    assert got == [4, 5, 6]


async def test_following_from_now_on_skips_what_was(store, events):
    await _say(store, "before")
    following = events.follow()
    async with anyio.create_task_group() as tasks:
        got = []

        async def take():
            got.append((await anext(following)).data["word"])

        tasks.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        await store.read(lambda db: None)  # reads take turns, so that of "now" is over
        await _say(store, "after")
    await following.aclose()
    assert got == ["after"]


async def test_closing_ends_those_who_follow(store, events):
    ended = []

    async def follow():
        async for _ in events.follow():
            pass
        ended.append(True)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            await events.close()
    assert ended == [True]


async def test_pruning_keeps_the_newest_and_the_young(store, events):
    await _say(store, *"abcde")
    later = datetime.now(UTC) + timedelta(seconds=1)
    assert await events.prune(later - timedelta(days=1), keep=0) == 0
    assert await events.prune(later, keep=2) == 3
    assert _words(await events.after(0)) == ["d", "e"]
    assert await events.prune(later, keep=0) == 2
    assert await _say(store, "f") == [6]  # no number is given out twice


async def test_whoever_missed_pruned_events_is_told_so(store, events):
    await _say(store, *"abcde")
    await events.prune(datetime.now(UTC) + timedelta(seconds=1), keep=2)
    assert _words(await events.after(3)) == ["d", "e"]
    for seq in (2, 99):
        with pytest.raises(TakebackError) as gone:
            await events.after(seq)
        assert (gone.value.code, gone.value.data) == ("events.gone", {"last": 5})
    with pytest.raises(TakebackError):
        await anext(events.follow(2))
    await events.prune(datetime.now(UTC) + timedelta(seconds=1), keep=0)
    assert await events.after(5) == []
    with pytest.raises(TakebackError):
        await events.after(4)


_CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from typing import ClassVar
from takeback import faults
from takeback.events import Event, Events
from takeback.store import Store

class Said(Event):
    kind: ClassVar[str] = "test.said"
    word: str

async def main():
    store = await Store.open(Path(sys.argv[1]))
    events = Events(store)
    events.on("*", lambda seq, event: print(event.word, flush=True))
    await store.transaction(lambda tx: tx.emit(Said(word="a")))
    faults.install(lambda name: name == sys.argv[2] and os.kill(os.getpid(), signal.SIGKILL))
    await store.transaction(lambda tx: tx.emit(Said(word="b")))

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("point", "kept"),
    [("store.ran", ["a"]), ("store.committed", ["a", "b"]), ("store.delivering", ["a", "b"])],
)
async def test_what_a_killed_process_committed_and_did_not_tell_is_found_by_who_resumes(
    tmp_path, point, kept
):
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(tmp_path / "t.db"), point],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert child.stdout.split() == ["a"]
    async with await Store.open(tmp_path / "t.db") as store:
        assert _words(await Events(store).after(0)) == kept
