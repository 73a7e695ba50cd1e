"""A module that breaks, hangs or won't leave harms no neighbour, and the supervisor says why."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import NotFoundError, TakebackError
from takeback.manifest import Manifest
from takeback.module import Host, Module
from takeback.sources import Source, broken
from takeback.supervisor import Patience, Supervisor

pytestmark = pytest.mark.anyio

START, STOP, CANCEL = 10.0, 20.0, 30.0  # apart from each other, so that a test can end one kind of wait


class Clock:
    """Waits end when the test says so; time moves by hand."""

    def __init__(self):
        self.time = 0.0
        self.asked: list[float] = []
        self.hurry: set[float] = set()
        self._waits: list[tuple[float, anyio.Event]] = []
        self._new = anyio.Event()

    async def sleep(self, seconds):
        self.asked.append(seconds)
        if seconds in self.hurry:
            return
        wait = (seconds, anyio.Event())
        self._waits.append(wait)
        self._new.set()
        self._new = anyio.Event()
        try:
            await wait[1].wait()
        finally:
            self._waits.remove(wait)

    async def past(self, seconds):
        """Wait until somebody waits so long, and end it."""
        with anyio.fail_after(10):
            while not self.end(seconds):
                await self._new.wait()
        await quiet()

    def end(self, seconds):
        """End every wait of this length that there is now; answers how many."""
        ended = [event for length, event in self._waits if length == seconds]
        for event in ended:
            event.set()
        return len(ended)

    def now(self):
        return self.time


async def quiet():
    """Let everything run that can."""
    for _ in range(40):
        await anyio.lowlevel.checkpoint()


class Stage:
    """A supervisor with modules written for a test, and a record of what it and they did."""

    def __init__(self, *made, restarts=5):
        self.clock = Clock()
        self.log: list[str] = []
        self.changes: list[tuple[str, str, str]] = []
        self._heard = anyio.Event()
        self._made = made
        self._patience = Patience(
            start=START,
            stop=STOP,
            cancel=CANCEL,
            drain=60.0,
            restarts=restarts,
            sleep=self.clock.sleep,
            now=self.clock.now,
        )
        self.slow_to_make = anyio.lowlevel.checkpoint
        self.supervisor: Supervisor
        self.tasks: anyio.abc.TaskGroup

    async def __aenter__(self):
        self.tasks = await anyio.create_task_group().__aenter__()
        sources = [made if isinstance(made, Source) else Source.of(made) for made in self._made]
        self.supervisor = Supervisor(
            self.tasks, self.make, sources, patience=self._patience, on_change=self._note
        )
        return self

    async def __aexit__(self, *exc):
        with anyio.fail_after(10, shield=True):
            self.clock.hurry |= {STOP, CANCEL}
            while self.clock.end(STOP) + self.clock.end(CANCEL):
                await quiet()
            await self.supervisor.stop()
        await self.tasks.__aexit__(None, None, None)

    async def make(self, source):
        await self.slow_to_make()
        module = source.load()(cast(Host, None))
        module.log = self.log
        return module

    def _note(self, name, state, why):
        self.changes.append((name, state, why))
        self._heard.set()
        self._heard = anyio.Event()

    async def reaches(self, name, state):
        """Wait until the module is in the state; answers why it is."""
        with anyio.fail_after(10):
            while self.supervisor.lives[name].state != state:
                await self._heard.wait()
        return self.supervisor.lives[name].why

    def shown(self):
        return {name: life.shown for name, life in self.supervisor.lives.items()}

    def running(self):
        return {name for name, life in self.supervisor.lives.items() if life.state == "running"}

    def states(self, name):
        return [state for other, state, _ in self.changes if other == name]


def module(title, *, needs=(), after=(), init=None, begin=None, work=None, end=None):
    """A module class: `init` is called when it is made, the others awaited; `work` is a task of its own."""

    class Made(Module):
        manifest = Manifest(1, title, "For a test.", tuple(needs), tuple(after))
        log: list[str]

        def __init__(self, host):
            super().__init__(host)
            if init:
                init()

        @asynccontextmanager
        async def life(self, tasks):
            if begin:
                await begin()
            if work:
                tasks.start_soon(work)
            self.log.append(f"+{title}")
            try:
                yield
            finally:
                self.log.append(f"-{title}")
                if end:
                    await end()

    return Made


def raises(exc):
    def now():
        raise exc

    async def soon():
        raise exc

    return now, soon


class Bomb:
    """Work that raises each time the test sets it off."""

    def __init__(self, exc):
        self.exc = exc
        self.off = anyio.Event()

    async def __call__(self):
        await self.off.wait()
        self.off = anyio.Event()
        raise self.exc


class Stubborn:
    """Swallows every cancellation until the test lets go."""

    def __init__(self):
        self.free = anyio.Event()
        self.cancelled = 0

    async def __call__(self):
        while not self.free.is_set():
            try:
                await self.free.wait()
            except asyncio.CancelledError:
                self.cancelled += 1


class Odd(BaseException):
    """Not even an Exception."""


FAULTS = [
    (RuntimeError("boom"), "RuntimeError: boom"),
    (TakebackError("mail.port", "Port 25 is taken", "Choose another."), "Port 25 is taken. Choose another."),
    (SystemExit(3), "SystemExit: 3"),
    (asyncio.CancelledError("mine"), "CancelledError: mine"),
    (Odd("odd"), "Odd: odd"),
    (BaseExceptionGroup("all", [ValueError("one"), Odd("two")]), "ValueError: one; Odd: two"),
]


# ---------------------------------------------------------------------- order


async def test_modules_start_after_what_they_need_and_stop_before_it():
    async with Stage(
        module("web", needs=["files"]), module("files", needs=["undo"]), module("undo")
    ) as stage:
        await stage.supervisor.start()
        assert stage.log == ["+undo", "+files", "+web"]
        assert stage.shown() == {"web": "running", "files": "running", "undo": "running"}
        await stage.supervisor.stop()
        assert stage.log[3:] == ["-web", "-files", "-undo"]
        assert stage.shown() == {"web": "off", "files": "off", "undo": "off"}


async def test_after_orders_start_and_stop_but_needs_nothing():
    begin, leave = anyio.Event(), anyio.Event()
    async with Stage(
        module("door", after=["slow", "bad", "ghost"], end=leave.wait),
        module("slow", begin=begin.wait),
        module("bad", init=raises(RuntimeError("boom"))[0]),
    ) as stage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.start)
            await stage.reaches("bad", "failed")
            await quiet()
            assert stage.log == []
            begin.set()
        assert stage.log == ["+slow", "+door"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.stop)
            await stage.reaches("door", "stopping")
            await quiet()
            assert stage.supervisor.lives["slow"].state == "running"
            leave.set()
        assert stage.log[2:] == ["-door", "-slow"]


async def test_what_a_module_only_comes_after_may_stop_without_it():
    async with Stage(module("door", after=["files"]), module("files")) as stage:
        await stage.supervisor.start()
        await stage.supervisor.disable("files")
        assert stage.shown() == {"door": "running", "files": "off"}


async def test_modules_that_do_not_lean_on_each_other_start_side_by_side():
    here, there = anyio.Event(), anyio.Event()

    async def one():
        here.set()
        await there.wait()

    async def two():
        there.set()
        await here.wait()

    async with Stage(module("one", begin=one), module("two", begin=two)) as stage:
        with anyio.fail_after(10):
            await stage.supervisor.start()
        assert stage.shown() == {"one": "running", "two": "running"}


async def test_a_circle_fails_its_members_and_dependents_alone():
    async with Stage(
        module("a", needs=["b"]), module("b", needs=["a"]), module("c", needs=["a"]), module("d")
    ) as stage:
        await stage.supervisor.start()
        assert stage.shown() == {
            "a": "failed (needs itself through a -> b -> a)",
            "b": "failed (needs itself through b -> a -> b)",
            "c": "failed (needs a, which needs itself through a -> b -> a)",
            "d": "running",
        }
        assert (await stage.supervisor.enable("a")).state == "failed"


async def test_a_missing_need_is_waited_for_by_name_and_may_come_later():
    async with Stage(module("web", needs=["store", "undo"]), module("undo")) as stage:
        await stage.supervisor.start()
        assert stage.shown() == {"web": "waiting (needs store)", "undo": "running"}
        await stage.supervisor.add(Source.of(module("store")))
        assert stage.shown() == {"web": "running", "undo": "running", "store": "running"}


# ---------------------------------------------------------------------- failing at start


async def test_what_can_not_be_loaded_is_a_failed_life():
    async with Stage(
        broken("torn", "acme", TakebackError("module.manifest", "torn/module.toml lacks the key 'api'")),
        Source("lost", "acme", raises(SystemExit("no such lib"))[0]),
        module("leans", needs=["torn", "lost"]),
        module("near"),
    ) as stage:
        await stage.supervisor.start()
        assert stage.shown() == {
            "torn": "failed (torn/module.toml lacks the key 'api')",
            "lost": "failed (SystemExit: no such lib)",
            "leans": "waiting (needs torn, lost)",
            "near": "running",
        }


@pytest.mark.parametrize("where", ["init", "begin"])
@pytest.mark.parametrize(("exc", "why"), FAULTS)
async def test_a_module_that_raises_at_start_harms_no_neighbour(where, exc, why):
    now, soon = raises(exc)
    async with Stage(
        module("bad", **{where: now if where == "init" else soon}),
        module("leans", needs=["bad"]),
        module("near"),
    ) as stage:
        await stage.supervisor.start()
        assert stage.shown() == {"bad": f"failed ({why})", "leans": "waiting (needs bad)", "near": "running"}
        assert not stage.supervisor.accepting("bad")
        assert stage.supervisor.accepting("near")


async def test_what_never_ran_is_not_started_again_by_itself_but_by_enable():
    faults = [RuntimeError("boom")]

    def once():
        if faults:
            raise faults.pop()

    async with Stage(module("bad", init=once), module("leans", needs=["bad"])) as stage:
        await stage.supervisor.start()
        await quiet()
        assert stage.states("bad") == ["starting", "failed"]
        await stage.supervisor.enable("bad")
        assert stage.shown() == {"bad": "running", "leans": "running"}


async def test_one_that_fails_when_it_is_enabled_again_says_so_and_does_not_try_on():
    faults: list[Exception] = []

    def at_start():
        if faults:
            raise faults.pop()

    async with Stage(module("mail", init=at_start)) as stage:
        await stage.supervisor.start()
        await stage.supervisor.disable("mail")
        faults.append(RuntimeError("port taken"))
        assert (await stage.supervisor.enable("mail")).shown == "failed (RuntimeError: port taken)"
        await quiet()
        assert 1.0 not in stage.clock.asked


async def test_a_module_that_hangs_at_start_fails_at_its_deadline():
    async with Stage(
        module("slow", begin=anyio.sleep_forever), module("leans", needs=["slow"]), module("near")
    ) as stage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.start)
            await stage.reaches("near", "running")
            await stage.reaches("slow", "starting")
            await stage.clock.past(START)
        assert stage.shown() == {
            "slow": "failed (not ready after 10 s)",
            "leans": "waiting (needs slow)",
            "near": "running",
        }


async def test_making_a_module_is_under_the_same_deadline():
    async with Stage(module("slow")) as stage:
        stage.slow_to_make = anyio.sleep_forever
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.start)
            await stage.clock.past(START)
        assert stage.shown() == {"slow": "failed (not ready after 10 s)"}


async def test_a_module_that_hangs_in_its_cancellation_is_abandoned(caplog):
    stubborn = Stubborn()
    async with Stage(module("slow", begin=stubborn), module("near")) as stage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.start)
            await stage.reaches("near", "running")
            await stage.clock.past(START)
            await stage.clock.past(CANCEL)
            await stage.clock.past(CANCEL)
        why = "not ready after 10 s; ignores its cancellation, abandoned"
        assert stage.shown() == {"slow": f"failed ({why})", "near": "running"}
        assert stubborn.cancelled == 2
        assert "Module slow was abandoned" in caplog.text
        # Two of one module at once would fight over what it owns.
        assert (await stage.supervisor.enable("slow")).why == why
        stubborn.free.set()
        await quiet()
        assert (await stage.supervisor.enable("slow")).state == "running"


# ---------------------------------------------------------------------- failing later


@pytest.mark.parametrize(
    ("exc", "why"),
    [(exc, why) for exc, why in FAULTS if not isinstance(exc, asyncio.CancelledError | SystemExit)]
    + [(SystemExit(3), "RuntimeError: a task of it called exit(3)")],
)
async def test_a_module_that_raises_later_stops_its_dependents_and_comes_back(exc, why):
    bomb = Bomb(exc)
    async with Stage(module("late", work=bomb), module("leans", needs=["late"]), module("near")) as stage:
        await stage.supervisor.start()
        stage.log.clear()
        bomb.off.set()
        assert await stage.reaches("late", "failed") == why
        assert await stage.reaches("leans", "waiting") == "needs late"
        assert not stage.supervisor.accepting("late")
        await stage.clock.past(1.0)
        await stage.reaches("leans", "running")
        assert stage.shown() == {"late": "running", "leans": "running", "near": "running"}
        assert stage.log == ["-late", "-leans", "+late", "+leans"]
        assert stage.supervisor.lives["late"].restarts == 1
        assert stage.states("near") == ["starting", "running"]


async def test_dependents_have_left_before_what_they_need_starts_again():
    bomb, leave = Bomb(RuntimeError("late")), anyio.Event()
    async with Stage(module("late", work=bomb), module("leans", needs=["late"], end=leave.wait)) as stage:
        await stage.supervisor.start()
        bomb.off.set()
        await stage.reaches("leans", "stopping")
        await stage.clock.past(1.0)
        assert stage.supervisor.lives["late"].state == "failed"
        leave.set()
        await stage.reaches("leans", "waiting")
        await stage.reaches("leans", "running")


async def test_pauses_double_up_to_a_limit_and_then_it_is_given_up():
    bomb = Bomb(RuntimeError("late"))
    async with Stage(module("late", work=bomb), module("near"), restarts=8) as stage:
        await stage.supervisor.start()
        for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
            bomb.off.set()
            assert await stage.reaches("late", "failed") == "RuntimeError: late"
            await stage.clock.past(pause)
            await stage.reaches("late", "running")
        bomb.off.set()
        await stage.reaches("late", "failed")
        await quiet()
        assert [seconds for seconds in stage.clock.asked if seconds not in (START, STOP)] == [
            1.0,
            2.0,
            4.0,
            8.0,
            16.0,
            32.0,
            60.0,
            60.0,
        ]
        why = "RuntimeError: late; given up after 8 restarts"
        assert stage.shown() == {"late": f"failed ({why})", "near": "running"}
        assert (await stage.supervisor.enable("late")).restarts == 0
        assert stage.shown() == {"late": "running", "near": "running"}


async def test_one_that_ran_well_begins_its_pauses_anew():
    bomb = Bomb(RuntimeError("late"))
    async with Stage(module("late", work=bomb)) as stage:
        await stage.supervisor.start()
        for pause, passed in ((1.0, 59.0), (2.0, 60.0), (1.0, 0.0)):
            bomb.off.set()
            await stage.reaches("late", "failed")
            await stage.clock.past(pause)
            stage.clock.time += passed
            await stage.reaches("late", "running")


async def test_a_failing_restart_counts_as_one():
    bomb = Bomb(RuntimeError("late"))
    faults: list[Exception] = []

    def at_start():
        if faults:
            raise faults.pop()

    async with Stage(module("late", init=at_start, work=bomb)) as stage:
        await stage.supervisor.start()
        faults.append(RuntimeError("port taken"))
        bomb.off.set()
        await stage.reaches("late", "failed")
        stage.clock.time += 100  # passed while it was down, so it is no time it ran well
        await stage.clock.past(1.0)
        assert await stage.reaches("late", "failed") == "RuntimeError: port taken"
        await stage.clock.past(2.0)
        await stage.reaches("late", "running")
        assert stage.supervisor.lives["late"].restarts == 2


async def test_a_module_that_is_enabled_while_it_pauses_starts_at_once():
    bomb = Bomb(RuntimeError("late"))
    async with Stage(module("late", work=bomb)) as stage:
        await stage.supervisor.start()
        bomb.off.set()
        await stage.reaches("late", "failed")
        with anyio.fail_after(10):
            assert (await stage.supervisor.enable("late")).state == "running"


async def test_a_module_that_is_disabled_while_it_pauses_stays_off():
    bomb = Bomb(RuntimeError("late"))
    async with Stage(module("late", work=bomb)) as stage:
        await stage.supervisor.start()
        bomb.off.set()
        await stage.reaches("late", "failed")
        with anyio.fail_after(10):
            assert (await stage.supervisor.disable("late")).state == "off"


async def test_a_module_that_ends_by_itself_has_failed():
    async with Stage(module("brief")) as stage:

        class Brief(Module):
            manifest = Manifest(1, "short", "Ends its own tasks.")

            @asynccontextmanager
            async def life(self, tasks):
                async def quit():
                    await over.wait()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(quit)
                yield

        over = anyio.Event()
        await stage.supervisor.start()
        await stage.supervisor.add(Source.of(Brief))
        over.set()
        assert await stage.reaches("short", "failed") == "ended by itself"


async def test_a_failing_module_that_hangs_on_its_way_out_is_cut_short():
    bomb, stubborn = Bomb(RuntimeError("late")), Stubborn()
    async with Stage(module("late", work=bomb, end=stubborn), module("near")) as stage:
        await stage.supervisor.start()
        bomb.off.set()
        await stage.reaches("late", "stopping")
        assert not stage.supervisor.accepting("late")
        await stage.clock.past(STOP)
        await stage.clock.past(CANCEL)
        await stage.clock.past(CANCEL)
        assert "abandoned" in await stage.reaches("late", "failed")
        assert stage.supervisor.lives["near"].state == "running"
        stubborn.free.set()


# ---------------------------------------------------------------------- stopping


async def test_a_module_that_hangs_at_stop_is_cancelled():
    async with Stage(module("sticky", end=anyio.sleep_forever), module("near")) as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.stop)
            await stage.reaches("near", "off")
            assert stage.supervisor.lives["sticky"].state == "stopping"
            await stage.clock.past(STOP)
        assert stage.shown() == {"sticky": "off", "near": "off"}


async def test_a_module_that_ignores_its_cancellation_at_stop_is_abandoned(caplog):
    stubborn = Stubborn()
    async with Stage(module("sticky", end=stubborn, needs=["undo"]), module("undo"), module("near")) as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.stop)
            await stage.reaches("near", "off")
            await stage.clock.past(STOP)
            await stage.clock.past(CANCEL)
            await stage.clock.past(CANCEL)
        why = "did not stop; ignores its cancellation, abandoned"
        assert stage.shown() == {"sticky": f"failed ({why})", "undo": "off", "near": "off"}
        assert stage.log[-1] == "-undo"
        assert "Module sticky was abandoned" in caplog.text
        stubborn.free.set()


async def test_what_a_module_raises_when_it_leaves_is_said():
    async with Stage(module("bad", end=raises(RuntimeError("late"))[1]), module("near")) as stage:
        await stage.supervisor.start()
        assert (await stage.supervisor.disable("bad")).shown == "off (RuntimeError: late)"
        assert stage.supervisor.lives["near"].state == "running"


async def test_a_module_may_use_its_own_tasks_while_it_leaves():
    asked, flushed = anyio.Event(), anyio.Event()

    async def worker():
        await asked.wait()
        flushed.set()
        await anyio.sleep_forever()

    async def flush():
        asked.set()
        await flushed.wait()

    async with Stage(module("audit", work=worker, end=flush)) as stage:
        await stage.supervisor.start()
        with anyio.fail_after(10):
            await stage.supervisor.stop()
        assert stage.shown() == {"audit": "off"}


async def test_stopping_does_not_wait_for_what_is_still_starting():
    async with Stage(module("slow", begin=anyio.sleep_forever)) as stage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.start)
            await stage.reaches("slow", "starting")
            with anyio.fail_after(10):
                await stage.supervisor.stop()
        assert stage.shown() == {"slow": "off"}


async def test_a_cancelled_task_group_still_ends_modules_in_order():
    async with Stage(module("web", needs=["undo"]), module("undo", end=anyio.lowlevel.checkpoint)) as stage:
        await stage.supervisor.start()
        stage.tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(10):
            await stage.supervisor.stop()
        assert stage.log == ["+undo", "+web", "-web", "-undo"]
        assert stage.shown() == {"web": "off", "undo": "off"}


# ---------------------------------------------------------------------- hot disable


async def test_disable_drains_calls_in_flight_then_stops():
    async with Stage(module("files"), module("near")) as stage:
        await stage.supervisor.start()
        gate = stage.supervisor.gate("files")
        gate.enter()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.disable, "files")
            await stage.reaches("files", "stopping")
            await quiet()
            assert not stage.supervisor.accepting("files")
            assert stage.log == ["+files", "+near"]
            gate.leave()
        assert stage.shown() == {"files": "off", "near": "running"}
        assert stage.log[-1] == "-files"
        assert stage.supervisor.gate("files") is gate
        await stage.supervisor.enable("files")
        assert stage.supervisor.accepting("files")
        assert stage.states("near") == ["starting", "running"]


async def test_what_is_needed_takes_calls_until_its_dependents_have_left():
    async with Stage(module("files", needs=["undo"]), module("undo")) as stage:
        await stage.supervisor.start()
        gate = stage.supervisor.gate("files")
        gate.enter()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.disable, "undo")
            await stage.reaches("files", "stopping")
            await quiet()
            # A write in flight must still be able to confirm what it began.
            assert stage.supervisor.accepting("undo")
            gate.leave()
        assert stage.shown() == {"files": "waiting (needs undo)", "undo": "off"}
        await stage.supervisor.enable("undo")
        assert stage.shown() == {"files": "running", "undo": "running"}


async def test_a_drain_that_takes_too_long_is_logged_and_ended(caplog):
    async with Stage(module("files")) as stage:
        stage.supervisor = Supervisor(
            stage.tasks, stage.make, [Source.of(module("files"))], patience=Patience(drain=0)
        )
        await stage.supervisor.start()
        stage.supervisor.gate("files").enter()
        assert (await stage.supervisor.disable("files")).state == "off"
        assert "files stops with 1 calls in flight" in caplog.text


async def test_an_enable_in_the_middle_of_a_disable_ends_running():
    leave = anyio.Event()
    async with Stage(module("files", needs=["undo"], end=leave.wait), module("undo")) as stage:
        await stage.supervisor.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.supervisor.disable, "undo")
            await stage.reaches("files", "stopping")
            tasks.start_soon(stage.supervisor.enable, "undo")
            await quiet()
            leave.set()
            await stage.reaches("undo", "stopping")
            await stage.reaches("files", "running")
        assert stage.shown() == {"files": "running", "undo": "running"}


async def test_a_module_that_is_not_enabled_is_off_until_it_is():
    source = Source("mail", "acme", lambda: module("mail"), Manifest(1, "mail", "x"), enabled=False)
    async with Stage(source, module("leans", needs=["mail"])) as stage:
        await stage.supervisor.start()
        assert stage.shown() == {"mail": "off (not enabled)", "leans": "waiting (needs mail)"}
        await stage.supervisor.enable("mail")
        assert stage.shown() == {"mail": "running", "leans": "running"}


async def test_an_unknown_module_is_said_to_be_so():
    async with Stage(module("near")) as stage:
        await stage.supervisor.start()
        assert not stage.supervisor.accepting("ghost")
        for call in (stage.supervisor.enable, stage.supervisor.disable):
            with pytest.raises(NotFoundError) as caught:
                await call("ghost")
            assert caught.value.code == "module.unknown"
        with pytest.raises(ValueError, match="near is known already"):
            await stage.supervisor.add(Source.of(module("near")))


async def test_a_listener_that_raises_ends_no_module(caplog):
    def listener(name, state, why):
        raise RuntimeError("deaf")

    async with Stage(module("near")) as stage:
        stage.supervisor = Supervisor(
            stage.tasks, stage.make, [Source.of(module("near"))], on_change=listener
        )
        await stage.supervisor.start()
        assert stage.shown() == {"near": "running"}
        assert "A listener failed" in caplog.text


def test_a_keyboard_interrupt_is_not_a_modules_to_keep():
    async def main():
        async with Stage(module("near", begin=raises(KeyboardInterrupt())[1])) as stage:
            await stage.supervisor.start()

    with pytest.raises(KeyboardInterrupt):
        anyio.run(main)


# ---------------------------------------------------------------------- any graph, any failures

NAMES = [f"m{number}" for number in range(6)]
houses = st.fixed_dictionaries(
    {
        name: st.tuples(
            st.sets(st.sampled_from([*NAMES, "ghost"]), max_size=2),
            st.sets(st.sampled_from(NAMES), max_size=2),
            st.sampled_from(["well", "well", "well", "init", "begin", "hang", "later"]),
        )
        for name in NAMES
    }
)


def expected(house, failed):
    """Who should be running, worked out without the supervisor: nobody failed, nobody's needs failed."""
    running = set(NAMES) - failed
    while True:
        kept = {name for name in running if house[name][0] - {name} <= running}
        # Of a circle nobody is first, so that none of it survives building up from nothing.
        if kept == running:
            break
        running = kept
    built: set[str] = set()
    while new := {name for name in running - built if house[name][0] - {name} <= built}:
        built |= new
    return built


@given(houses)
def test_in_any_house_neighbours_are_unharmed_and_everything_stops(house):
    anyio.run(live_through, house)


async def live_through(house):
    bombs = {name: Bomb(RuntimeError("late")) for name in NAMES}
    faults = {name: how for name, (_, _, how) in house.items()}

    def made(name):
        needs, after, how = house[name]
        now, soon = raises(RuntimeError("boom"))
        parts = {"init": {"init": now}, "begin": {"begin": soon}, "hang": {"begin": anyio.sleep_forever}}
        return module(
            name, needs=needs - {name}, after=after - {name}, work=bombs[name], **parts.get(how, {})
        )

    async with Stage(*map(made, NAMES), restarts=0) as stage:
        lives = stage.supervisor.lives
        with anyio.fail_after(20):
            await start_whole(stage)
            never = {name for name in NAMES if faults[name] in ("init", "begin", "hang")}
            assert stage.running() == expected(house, never)
            assert started_in_order(house, stage.log)
            assert all(life.state == "running" or life.why for life in lives.values())

            for name in sorted(stage.running()):
                if faults[name] == "later" and lives[name].state == "running":
                    bombs[name].off.set()
                    await stage.reaches(name, "failed")
                    never.add(name)
                    await quiet()
            survivors = expected(house, never)
            assert stage.running() == survivors
            assert all(stage.states(name) == ["starting", "running"] for name in survivors)

            before = len(stage.log)
            await stage.supervisor.stop()
        assert {life.state for life in lives.values()} == {"off"}
        assert started_in_order(house, list(reversed(stage.log[before:])), sign="-")
        assert Counter(line[1:] for line in stage.log if line[0] == "+") == Counter(
            line[1:] for line in stage.log if line[0] == "-"
        )


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES), max_size=3)),
    st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES), st.integers(0, 3)), max_size=12),
)
def test_switching_at_any_moment_ends_as_the_last_switches_say(needs, switches):
    anyio.run(switch_about, needs, switches)


async def switch_about(needs, switches):
    # Needs of a higher number only, so that there is no circle.
    house: dict[str, tuple[set[str], set[str], str]] = {
        name: ({other for other in needs.get(name, ()) if other > name}, set(), "well") for name in NAMES
    }
    off = {name for name in NAMES if [on for on, other, _ in switches if other == name][-1:] == [False]}
    async with Stage(*(module(name, needs=house[name][0]) for name in NAMES)) as stage:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.supervisor.start)
                for on, name, ticks in switches:
                    for _ in range(ticks):
                        await anyio.lowlevel.checkpoint()
                    tasks.start_soon(stage.supervisor.enable if on else stage.supervisor.disable, name)
            assert stage.running() == expected(house, off)
            await stage.supervisor.stop()
        up: set[str] = set()
        for sign, name in ((line[0], line[1:]) for line in stage.log):
            if sign == "+":
                assert house[name][0] <= up
                assert name not in up
                up.add(name)
            else:
                assert not {other for other in up if name in house[other][0]}
                up.remove(name)
        assert not up


async def start_whole(stage):
    """Start everything, and let the time pass that hanging modules get."""
    done = anyio.Event()

    async def start():
        await stage.supervisor.start()
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        while not done.is_set():
            await quiet()
            stage.clock.end(START)


def started_in_order(house, log, sign="+"):
    """Whether each line comes after those of all that its module needs."""
    at = {line[1:]: number for number, line in enumerate(log) if line[0] == sign}
    return all(at.get(need, -1) < at[name] for name in at for need in house[name][0] - {name} if need in at)
