"""The kernel as a whole: its home, its deadlines, and modules that misbehave."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from takeback import Check, Context, Event, Home, Host, Kernel, Manifest, Module, TakebackError, faults, tool
from takeback.module import call_within
from takeback.patience import Patience
from takeback.sources import Source
from tests.kernel.samples import Done, EchoModule, Given, NeighbourModule, SlowModule

pytestmark = pytest.mark.anyio
PERSON = "cli:person"
QUICK = Patience(start=0.3, drain=5, stop=0.3, cancel=0.3, restarts=0)


def named(name: str, **more: object) -> Manifest:
    return Manifest(1, name, f"The module {name}.", **more)  # type: ignore[arg-type]


class Happened(Event):
    kind: ClassVar[str] = "test.happened"


class BadStartModule(Module):
    manifest: ClassVar[Manifest] = named("badstart")

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        raise RuntimeError("no such port")
        yield


class HangingModule(Module):
    manifest: ClassVar[Manifest] = named("hanging")

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        await anyio.Event().wait()
        yield


class StickyModule(Module):
    manifest: ClassVar[Manifest] = named("sticky")

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        yield
        await anyio.Event().wait()


class LateModule(Module):
    manifest: ClassVar[Manifest] = named("late")
    now: ClassVar[anyio.Event]

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        async def fail() -> None:
            await type(self).now.wait()
            raise RuntimeError("later")

        tasks.start_soon(fail)
        yield


class NeedyModule(Module):
    manifest: ClassVar[Manifest] = named("needy", needs=("badstart",))


class LonelyModule(Module):
    manifest: ClassVar[Manifest] = named("lonely", needs=("nowhere",))


class RoundModule(Module):
    manifest: ClassVar[Manifest] = named("round", needs=("trip",))


class TripModule(Module):
    manifest: ClassVar[Manifest] = named("trip", needs=("round",))


class WrongSettingsModule(Module):
    manifest: ClassVar[Manifest] = named("wrongtool")

    @tool(effect="read", reach=("nobody",))
    async def look(self, ctx: Context, args: Given) -> Done:
        """Look."""
        return Done()


async def until(kernel: Kernel, done: Callable[[], bool]) -> None:
    """Wait for something that a change of some module's state brings about."""
    changed = anyio.Event()

    def note() -> None:
        if done():
            changed.set()

    stop = kernel.router.on_change(note)
    note()
    with anyio.fail_after(10):
        await changed.wait()
    stop()


def _cannot_import() -> type[Module]:
    raise ImportError("No module named 'numpy_of_tomorrow'")


async def test_a_module_that_misbehaves_harms_no_neighbour_and_says_why(tmp_path: Path) -> None:
    LateModule.now = anyio.Event()
    broken = Source("unimportable", "x:Y", _cannot_import, named("unimportable"), "somebody", False)
    modules: list[type[Module] | Source] = [
        BadStartModule, HangingModule, StickyModule, LateModule, NeedyModule, LonelyModule, RoundModule,
        TripModule, WrongSettingsModule, EchoModule, broken,
    ]  # fmt: skip
    with anyio.fail_after(20):
        async with Kernel(tmp_path / "home", settings={}, modules=modules, patience=QUICK) as kernel:
            ctx = kernel.enter(PERSON)
            shown = {m.name: (m.state, m.why) for m in (await ctx.kernel.modules()).modules}
            assert shown["echo"] == ("running", "")
            assert shown["badstart"] == ("failed", "RuntimeError: no such port")
            assert shown["hanging"][0] == "failed"
            assert "not ready" in shown["hanging"][1]
            assert shown["needy"][0] == "waiting"
            assert "badstart" in shown["needy"][1]
            assert "nowhere" in shown["lonely"][1]
            assert "round -> trip -> round" in shown["round"][1] + shown["trip"][1]
            assert "numpy_of_tomorrow" in shown["unimportable"][1]
            assert "reach must be some of" in shown["wrongtool"][1]
            assert shown["late"] == ("running", "")
            LateModule.now.set()
            await until(kernel, lambda: kernel.supervisor.lives["late"].state == "failed")
            assert kernel.supervisor.lives["late"].why.startswith("RuntimeError: later")
            assert (await ctx.echo.all()).caller == PERSON
    # leaving did not hang although `sticky` refuses to stop


async def test_disabling_lets_calls_in_flight_finish_and_refuses_new_ones(tmp_path: Path) -> None:
    async with Kernel(tmp_path / "home", settings={}, modules=[SlowModule, EchoModule]) as kernel:
        ctx = kernel.enter(PERSON)
        slow = kernel.supervisor.lives["slow"].module
        assert isinstance(slow, SlowModule)
        answers: list[Done] = []

        async def call() -> None:
            answers.append(await ctx.slow.wait())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await slow.inside.wait()
            tasks.start_soon(kernel.set_enabled, "slow", False)
            await until(kernel, lambda: not kernel.supervisor.accepting("slow"))
            with pytest.raises(TakebackError) as off:
                await ctx.slow.wait()
            assert off.value.code == "module.off"
            assert not answers
            slow.go.set()
        assert answers == [Done()]
        assert kernel.supervisor.lives["slow"].state == "off"
        assert "slow.wait" not in [spec.name for spec in kernel.router.reachable(PERSON)]
        await kernel.enter(PERSON, present=True).kernel.enable(name="slow")
        again = kernel.supervisor.lives["slow"].module
        assert isinstance(again, SlowModule)
        again.go.set()
        assert await ctx.slow.wait() == Done()


async def test_a_module_switched_off_stays_off(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with Kernel(home, settings={}, modules=[EchoModule]) as kernel:
        await kernel.enter(PERSON, present=True).kernel.disable(name="echo")
    async with Kernel(home, settings={}, modules=[EchoModule]) as kernel:
        assert kernel.supervisor.lives["echo"].state == "off"
        with pytest.raises(TakebackError) as needed:
            await kernel.enter(PERSON, present=True).kernel.disable(name="kernel")
        assert needed.value.code == "module.needed"


async def test_being_switched_on_is_not_inherited_with_a_name(tmp_path: Path) -> None:
    home = tmp_path / "home"
    mine = replace(Source.of(EchoModule, builtin=False, distribution="mine"), enabled=False)
    async with Kernel(home, settings={}, modules=[mine]) as kernel:
        assert kernel.supervisor.lives["echo"].state == "off"
        await kernel.enter(PERSON, present=True).kernel.enable(name="echo")
    async with Kernel(home, settings={}, modules=[mine]) as kernel:
        assert kernel.supervisor.lives["echo"].state == "running"
    async with Kernel(home, settings={}, modules=[replace(mine, distribution="theirs")]) as kernel:
        assert kernel.supervisor.lives["echo"].state == "off"


async def test_a_call_past_its_deadline_is_cancelled_and_rolled_back(tmp_path: Path) -> None:
    async with Kernel(tmp_path / "home", settings={}, modules=[SlowModule]) as kernel:
        slow = kernel.supervisor.lives["slow"].module
        assert isinstance(slow, SlowModule)
        ctx = kernel.enter(PERSON)
        with pytest.raises(TakebackError) as late:
            await call_within(ctx, "slow.wait", {}, 0.01)
        assert late.value.code == "call.deadline"
        async with anyio.create_task_group() as tasks:

            async def let_go() -> None:
                await anyio.to_thread.run_sync(slow.in_thread.wait, 10)
                await over.wait()
                slow.release.set()

            over = anyio.Event()
            tasks.start_soon(let_go)
            with anyio.CancelScope() as scope:

                async def cancel() -> None:
                    await anyio.to_thread.run_sync(slow.in_thread.wait, 10)
                    scope.cancel()
                    over.set()

                tasks.start_soon(cancel)
                await ctx.call("slow.write")
        rows = await kernel.store.read(lambda db: db.execute("SELECT count(*) FROM slow_row").fetchone()[0])
        assert rows == 0


async def test_neighbours_hear_of_changes(tmp_path: Path) -> None:
    async with Kernel(tmp_path / "home", settings={}, modules=[NeighbourModule, EchoModule]) as kernel:
        listener = kernel.supervisor.lives["neighbour"].module
        assert isinstance(listener, NeighbourModule)
        assert listener.told >= 1
        listener.heard = anyio.Event()
        await kernel.set_enabled("echo", False)
        with anyio.fail_after(10):
            await listener.heard.wait()


async def test_a_module_that_hangs_or_fails_over_a_change_harms_no_neighbour(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class StuckModule(Module):
        manifest: ClassVar[Manifest] = named("aaa-stuck")

        async def neighbours_changed(self) -> None:
            await anyio.sleep_forever()

    class QuitterModule(Module):
        manifest: ClassVar[Manifest] = named("aab-quitter")

        async def neighbours_changed(self) -> None:
            sys.exit(3)

    modules = [StuckModule, QuitterModule, NeighbourModule]
    with anyio.fail_after(10):
        async with Kernel(tmp_path / "home", settings={}, modules=modules, patience=QUICK) as kernel:
            listener = kernel.supervisor.lives["neighbour"].module
            assert isinstance(listener, NeighbourModule)
            assert listener.told >= 1
            # The next change comes through as well, while the stuck one still holds the first.
            told = listener.told
            listener.heard = anyio.Event()
            await kernel.set_enabled("aab-quitter", False)
            await listener.heard.wait()
            assert listener.told > told
    assert "aab-quitter could not take a change in: SystemExit" in caplog.text


async def test_what_the_program_raises_leaves_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with Kernel(tmp_path / "home", settings={}, modules=[EchoModule]):
            raise KeyError("mine")


async def test_a_door_label_needs_a_door(tmp_path: Path) -> None:
    hosts: list[Host] = []

    class AddedDoorModule(Module):
        manifest: ClassVar[Manifest] = named("backdoor", door=True)

        def __init__(self, host: Host) -> None:
            super().__init__(host)
            hosts.append(host)

    added = Source.of(AddedDoorModule, builtin=False, distribution="somebody")
    async with Kernel(tmp_path / "home", settings={}, modules=[added, EchoModule]):
        assert hosts[0].door is None
        with pytest.raises(TakebackError) as refused:
            hosts[0].doorway()
        assert refused.value.code == "module.no_door"


async def test_a_second_owner_is_refused_and_a_killed_ones_home_is_taken_over(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = (
        "import anyio, sys\n"
        "from takeback import Kernel\n"
        "async def main():\n"
        f"    async with Kernel({str(home)!r}, settings={{}}, modules=[]):\n"
        "        print('open', flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        line = await anyio.to_thread.run_sync(owner.stdout.readline)
        assert line == b"open\n"
        with pytest.raises(TakebackError) as locked:
            async with Kernel(home, settings={}, modules=[]):
                pass
        assert locked.value.code == "home.locked"
        assert str(owner.pid) in locked.value.message
        owner.send_signal(signal.SIGKILL)
        await anyio.to_thread.run_sync(owner.wait)
    async with Kernel(home, settings={}, modules=[EchoModule]) as kernel:
        assert (await kernel.enter(PERSON).echo.all()).caller == PERSON
    async with Kernel(home, settings={}, modules=[EchoModule]) as first:
        with pytest.raises(TakebackError):
            async with Kernel(home, settings={}, modules=[]):
                pass
        assert (await first.enter(PERSON).echo.all()).caller == PERSON


@pytest.mark.parametrize("loss", ["gone", "empty"])
async def test_a_lost_database_is_no_empty_log(tmp_path: Path, loss: str) -> None:
    home = Home.at(tmp_path / "home")
    async with Kernel(home, settings={}, modules=[EchoModule]):
        pass
    home.database.unlink()
    if loss == "empty":
        home.database.touch()
    with pytest.raises(TakebackError) as lost:
        async with Kernel(home, settings={}, modules=[]):
            pass
    assert lost.value.code == "store.gone"
    (home.state / "database.made").unlink()
    async with Kernel(home, settings={}, modules=[EchoModule]) as kernel:
        assert (await kernel.enter(PERSON).echo.all()).caller == PERSON


@pytest.mark.parametrize("schema", [b"R\xf6WID", b"nonsense"])
async def test_a_damaged_schema_is_said(tmp_path: Path, schema: bytes) -> None:
    home = Home.at(tmp_path / "home")
    async with Kernel(home, settings={}, modules=[EchoModule]):
        pass
    data = home.database.read_bytes()
    assert b"WITHOUT ROWID" in data
    home.database.write_bytes(data.replace(b"WITHOUT ROWID", b"WITHOUT " + schema.ljust(5)[:5]))
    with pytest.raises(TakebackError) as damaged:
        async with Kernel(home, settings={}, modules=[]):
            pass
    assert damaged.value.code == "store.corrupt"


async def test_the_persons_rules_come_from_the_settings(tmp_path: Path) -> None:
    rules = [{"effect": "deny", "caller": "*:agent:*", "tool": "echo.all", "reason": "not at night"}]
    async with Kernel(
        tmp_path / "home", settings={"kernel": {"rules": rules}}, modules=[EchoModule]
    ) as kernel:
        with pytest.raises(TakebackError):
            await kernel.enter("mcp:agent:juno").echo.all()
        explained = await kernel.enter(PERSON).kernel.reach(caller="mcp:agent:juno", tool="echo.all")
        assert (explained.allowed, explained.reason) == (False, "not at night")
    with pytest.raises(TakebackError) as wrong:
        async with Kernel(tmp_path / "home", settings={"kernel": {"rulez": []}}, modules=[]):
            pass
    assert wrong.value.code == "settings.invalid"


@pytest.mark.parametrize(
    "wrong",
    [
        {"effect": "allow"},
        {"caller": "mcp:agent:Juno"},
        {"tool": "echo all"},
        {"reason": ""},
        {"callers": "*"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
async def test_19_a_rule_that_cannot_be_understood_lets_nobody_in(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    rule = {"effect": "deny", "caller": "*:agent:*", "tool": "echo.*", "reason": "not at night", **wrong}
    with pytest.raises(TakebackError) as refused:
        async with Kernel(tmp_path / "home", settings={"kernel": {"rules": [rule]}}, modules=[EchoModule]):
            pass
    assert refused.value.code == "settings.invalid"
    assert f"rules.0.{next(iter(wrong))}" in refused.value.message


@pytest.mark.parametrize("kind", [str, Path])
async def test_a_module_is_given_as_its_folder(tmp_path: Path, kind: Callable[[Path], str | Path]) -> None:
    folder = tmp_path / f"spoken_{kind.__name__.lower()}"
    folder.mkdir()
    (folder / "module.toml").write_text(f'api = 1\nname = "{folder.name}"\nsummary = "Spoken of."\n')
    (folder / "module.py").write_text("from takeback import Module\nclass SpokenModule(Module): pass\n")
    async with Kernel(tmp_path / "home", settings={}, modules=[kind(folder)]) as kernel:
        assert kernel.supervisor.life(folder.name).state == "running"


async def test_a_module_that_never_ran_is_off_to_the_person_and_unknown_to_agents(tmp_path: Path) -> None:
    modules = [EchoModule, BadStartModule, WrongSettingsModule]
    async with Kernel(tmp_path / "home", settings={}, modules=modules, patience=QUICK) as kernel:
        with pytest.raises(TakebackError) as off:
            await kernel.enter(PERSON).call("wrongtool.look")
        assert off.value.code == "module.off"
        assert "reach must be some of" in off.value.message
        with pytest.raises(TakebackError) as unknown:
            await kernel.enter("mcp:agent:juno").call("wrongtool.look")
        assert unknown.value.code == "tool.unknown"


async def test_a_misspelt_section_of_the_settings_is_noticed(tmp_path: Path) -> None:
    async with Kernel(tmp_path / "home", settings={"ecko": {"a": 1}}, modules=[EchoModule]) as kernel:
        ctx = kernel.enter(PERSON)
        assert "ecko" in (await ctx.kernel.modules()).problems[0]
        checks = {c.name: c for c in (await ctx.kernel.doctor()).checks}
        assert not checks["modules and settings"].ok


async def test_old_events_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("takeback.kernel._EVENTS_KEPT", 1)
    home = tmp_path / "home"
    async with Kernel(home, settings={}, modules=[EchoModule]) as kernel:
        for _ in range(3):
            await kernel.store.transaction(lambda tx: tx.emit(Happened()))
        await kernel.store.transaction(
            lambda tx: tx.execute("UPDATE kernel_outbox SET at = '2001-01-01T00:00:00.000Z'")
        )
    async with Kernel(home, settings={}, modules=[EchoModule]) as kernel:
        with anyio.fail_after(10):
            while len(await _kept(kernel)) > 1:
                await anyio.lowlevel.checkpoint()


async def test_events_that_cannot_be_forgotten_end_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, full = tmp_path / "home", TakebackError("store.full", "The disk is full.")

    def fail(name: str) -> None:
        if name == "store.begun":
            raise full

    class TriggerModule(Module):
        """Lets every transaction fail from the moment that all modules have started."""

        manifest: ClassVar[Manifest] = named("trigger")

        async def neighbours_changed(self) -> None:
            uninstall.append(faults.install(fail))

    uninstall: list[Callable[[], None]] = []
    async with Kernel(home, settings={}, modules=[TriggerModule, EchoModule]) as kernel:
        try:
            with anyio.fail_after(10):
                while "Old events could not be removed" not in caplog.text:
                    await anyio.lowlevel.checkpoint()
        finally:
            uninstall[0]()
        assert (await kernel.enter(PERSON).echo.all()).caller == PERSON
        await kernel.store.transaction(lambda tx: tx.emit(Happened()))


async def test_days_beyond_the_calendar_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TakebackError) as wrong:
        async with Kernel(tmp_path / "home", settings={"kernel": {"events_days": 1e7}}, modules=[]):
            pass
    assert wrong.value.code == "settings.invalid"


async def _kept(kernel: Kernel) -> list[object]:
    return await kernel.store.read(lambda db: db.execute("SELECT seq FROM kernel_outbox").fetchall())


async def test_a_check_that_hangs_or_fails_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SickModule(Module):
        manifest: ClassVar[Manifest] = named("sick")

        async def checks(self) -> list[Check]:
            raise RuntimeError("no pulse")

    class SlumberModule(Module):
        manifest: ClassVar[Manifest] = named("slumber")

        async def checks(self) -> list[Check]:
            await anyio.sleep_forever()
            return []

    monkeypatch.setattr("takeback.console._CHECK_SECONDS", 0.05)
    modules = [SickModule, SlumberModule, EchoModule]
    async with Kernel(tmp_path / "home", settings={}, modules=modules) as kernel:
        with anyio.fail_after(10):
            checks = {c.name: c for c in (await kernel.enter(PERSON).kernel.doctor()).checks}
    assert (checks["checks of sick"].ok, checks["checks of sick"].detail) == (False, "RuntimeError: no pulse")
    assert (checks["checks of slumber"].ok, checks["checks of slumber"].detail) == (False, "TimeoutError")
    assert checks["module echo"].ok


async def test_doctor_looks_at_store_and_modules(tmp_path: Path) -> None:
    modules = [EchoModule, BadStartModule]
    async with Kernel(tmp_path / "home", settings={}, modules=modules, patience=QUICK) as kernel:
        checks = {c.name: c for c in (await kernel.enter(PERSON).kernel.doctor()).checks}
        assert checks["database"].ok
        assert checks["module echo"].ok
        assert not checks["module badstart"].ok
        assert "no such port" in checks["module badstart"].detail
        status = await kernel.enter(PERSON).kernel.status()
        assert status.modules == {"running": 2, "failed": 1}


@pytest.mark.parametrize("verb", ["enable", "disable", "trust"])
async def test_settings_want_the_person_there(tmp_path: Path, verb: str) -> None:
    added = Source.of(EchoModule, builtin=False, distribution="somebody")
    added = replace(added, enabled=verb != "enable")
    async with Kernel(tmp_path / "home", settings={}, modules=[added]) as kernel:

        async def echo() -> tuple[str, bool]:
            (found,) = [m for m in (await kernel.enter(PERSON).kernel.modules()).modules if m.name == "echo"]
            return found.state, found.trusted

        before = await echo()
        with pytest.raises(TakebackError) as refused:
            await kernel.enter(PERSON).call(f"kernel.{verb}", name="echo")
        assert refused.value.code == "call.presence"
        assert await echo() == before
        await kernel.enter(PERSON, dry_run=True).call(f"kernel.{verb}", name="echo")
        assert await echo() == before
        await kernel.enter(PERSON, present=True).call(f"kernel.{verb}", name="echo")
        assert await echo() != before


async def test_what_is_built_in_is_neither_trusted_nor_distrusted(tmp_path: Path) -> None:
    async with Kernel(tmp_path / "home", settings={}, modules=[EchoModule]) as kernel:
        for verb in ("trust", "untrust"):
            with pytest.raises(TakebackError) as refused:
                await kernel.enter(PERSON, present=True).call(f"kernel.{verb}", name="echo")
            assert refused.value.code == "module.builtin"
