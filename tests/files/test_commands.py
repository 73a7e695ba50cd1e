"""What a command changed is one act: brought back byte for byte, and nothing of anybody else's with it."""

import os
import subprocess

import anyio
import pytest

from takeback import faults
from takeback.errors import ConflictError, NotFoundError, RefusedError, TakebackError, UsageError
from takeback.kernel import Kernel
from takeback_acts.files import mounts
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule

pytestmark = pytest.mark.anyio


class Running:
    """A command in its window, step by step."""

    def __init__(self, ctx, root, *words, **more):
        self._ctx, self._root = ctx, root
        self._asked = {"cwd": str(root), "command": list(words or ["make"]), **more}
        self.ended = None

    async def __aenter__(self):
        self.begun = await self._ctx.call("files.begin_command", self._asked)
        return self

    async def __aexit__(self, kind, error, trace):
        if kind is None:
            self.ended = await self._ctx.call("files.end_command", window=self.begun.window, exit_code=0)


def sh(root, script):
    """Runs a script in a folder, as a person's shell would."""
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(root)}
    for who in ("AUTHOR", "COMMITTER"):
        environ |= {f"GIT_{who}_NAME": "Ann", f"GIT_{who}_EMAIL": "ann@example.org"}
    done = subprocess.run(["sh", "-ec", script], cwd=root, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def shown(bench, act):
    return (await bench.person().call("undo.show", id=act)).act


async def test_what_a_command_did_is_one_act_and_comes_back_byte_for_byte(bench, root, snapshot):
    sh(
        root,
        "mkdir -p a/b empty; printf one > a/one; printf two > a/b/two; ln -s a/one link; chmod 700 a/one",
    )
    before = snapshot(root)
    async with Running(bench.agent(), root, "make", "all") as running:
        sh(root, "rm -r a empty; printf new > new; mkdir -p x/y; printf z > x/y/z; rm link; mkdir link")
    ended = running.ended
    assert ended.changed == 10
    act = await shown(bench, ended.act)
    assert (act.agent, act.session, act.summary) == ("juno", "s1", "Ran make all: 10 paths changed")
    assert {item.resource for item in act.touched} >= {bench.uri("a"), bench.uri("a") + "/", bench.uri("new")}
    after = snapshot(root)
    undone = await bench.undo(ended.act)
    assert snapshot(root) == before
    await bench.person().call("undo.redo", id=undone.act)
    assert snapshot(root, times=False).keys() == after.keys()


async def test_a_command_that_changes_nothing_leaves_no_act(bench, root):
    (root / "a").write_text("a")
    async with Running(bench.agent(), root) as running:
        sh(root, "cat a; touch b; rm b")
    assert running.ended.model_dump(exclude_defaults=True) == {}
    assert (await bench.person().call("undo.list")).acts == []


async def test_two_commands_one_after_another_are_two_acts(bench, root):
    (root / "a").write_text("1")
    async with Running(bench.agent(), root) as first:
        (root / "a").write_text("2")
    async with Running(bench.agent(), root) as second:
        (root / "a").write_text("3")
    await bench.undo(second.ended.act)
    assert (root / "a").read_text() == "2"
    await bench.undo(first.ended.act)
    assert (root / "a").read_text() == "1"


async def test_what_was_changed_before_the_command_is_none_of_its_doing(bench, root):
    (root / "a").write_text("1")
    async with Running(bench.agent(), root):
        pass
    (root / "a").write_text("mine")
    async with Running(bench.agent(), root) as running:
        (root / "b").write_text("b")
    assert running.ended.changed == 1
    await bench.undo(running.ended.act)
    assert (root / "a").read_text() == "mine"
    assert not (root / "b").exists()


async def test_what_takebacks_own_tools_did_meanwhile_is_not_counted_again(bench, root):
    (root / "d").mkdir()
    (root / "d" / "in").write_text("in")
    async with Running(bench.agent(), root) as running:
        (root / "a").write_text("a")
        writer = bench.agent("kim", session="s2")
        wrote = await writer.call("files.write", path="w", content="w")
        await writer.call("files.delete", path="d", recursive=True)
        await writer.call("files.make_dir", path="n/m", parents=True)
    assert (running.ended.changed, running.ended.coincident) == (1, [])
    await bench.undo(running.ended.act)
    assert not (root / "a").exists()
    assert (root / "w").read_text() == "w"
    await bench.undo(wrote.act)
    assert not (root / "w").exists()


async def test_what_both_a_tool_and_the_command_wrote_is_coincident(bench, root):
    (root / "a").write_text("1\n")
    async with Running(bench.agent(), root) as running:
        await bench.agent("kim", session="s2").call("files.write", path="a", content="2\n")
        (root / "a").write_text("3\n")
        (root / "b").write_text("b")
    assert running.ended.coincident == [str(root / "a")]
    assert running.ended.changed == 1
    await bench.undo(running.ended.act)
    assert (root / "a").read_text() == "3\n"
    assert not (root / "b").exists()


async def test_an_act_that_failed_in_the_window_is_not_taken_for_one(bench, root):
    (root / "d").mkdir()
    async with Running(bench.agent(), root) as running:
        with pytest.raises(TakebackError):
            await bench.agent("kim", session="s2").call("files.write", path="d", content="w")
        (root / "a").write_text("a")
    assert (running.ended.changed, running.ended.coincident) == (1, [])


async def test_two_commands_at_the_same_time_leave_each_others_paths_alone(bench, root):
    first, second = bench.agent(session="s1"), bench.agent("kim", session="s2")
    async with Running(first, root) as one:
        (root / "first").write_text("1")
        async with Running(second, root) as two:
            (root / "either").write_text("?")
        (root / "later").write_text("1")
    assert (two.ended.changed, two.ended.coincident) == (0, [str(root / "either")])
    assert two.ended.act is None
    assert (one.ended.changed, one.ended.coincident) == (2, [str(root / "either")])
    act = await shown(bench, one.ended.act)
    assert f"coincident: {root / 'either'}" in act.why
    await bench.undo(one.ended.act)
    assert [path.name for path in root.iterdir()] == ["either"]


async def test_commands_in_roots_within_each_other_leave_each_others_paths_alone(bench, root):
    (root / "in").mkdir()
    person = bench.person()
    async with Running(person, root, roots=[str(root)]) as outer:
        async with Running(person, root / "in", roots=[str(root / "in")]) as inner:
            (root / "in" / "either").write_text("?")
            (root / "mine").write_text("outer")
    assert inner.ended.coincident == outer.ended.coincident == [str(root / "in" / "either")]
    assert (inner.ended.changed, outer.ended.changed) == (0, 1)


async def test_what_holds_something_that_is_left_out_stays(bench, root):
    async with Running(bench.agent(), root) as running:
        sh(root, "mkdir -p new/node_modules new/src; echo 1 > new/src/a; echo 2 > new/node_modules/b")
    ended = running.ended
    assert ended.left_out == [str(root / "new" / "node_modules")]
    assert ended.notes == [
        f"not captured: {root / 'new'} (the folder stays, for it holds what is not put back)"
    ]
    await bench.undo(ended.act)
    assert sorted(path.name for path in (root / "new").iterdir()) == ["node_modules"]


async def test_what_can_not_be_captured_is_named_and_the_rest_comes_back(bench, root):
    (root / "a").write_text("a")
    os.mkfifo(root / "pipe")
    async with Running(bench.agent(), root) as running:
        sh(root, "rm a pipe")
    assert running.ended.notes == [f"not captured: {root / 'pipe'} (it is a pipe, a socket or a device)"]
    await bench.undo(running.ended.act)
    assert (root / "a").read_text() == "a"


async def test_a_command_of_which_nothing_can_be_put_back_is_in_the_log_as_final(bench, root):
    async with Running(bench.agent(), root) as running:
        os.mkfifo(root / "pipe")
    act = await shown(bench, running.ended.act)
    assert (act.state, act.undoable) == ("final", False)
    assert "pipe" in act.reason


async def test_names_that_are_no_text_come_back(bench, root, snapshot):
    sh(root, "printf x > $(printf 'a\\377b'); mkdir $(printf 'd\\376'); printf y > $(printf 'd\\376')/y")
    before = snapshot(root)
    async with Running(bench.agent(), root) as running:
        sh(root, "rm -r ./*")
    await bench.undo(running.ended.act)
    assert snapshot(root) == before


async def test_thousands_of_paths_are_one_act(bench, root):
    for number in range(3000):
        (root / f"{number}").write_text(str(number))
    async with Running(bench.agent(), root) as running:
        for number in range(3000):
            (root / f"{number}").write_text(f"-{number}")
    assert running.ended.changed == 3000
    await bench.undo(running.ended.act)
    assert (root / "2999").read_text() == "2999"


# ---------------------------------------------------------------------- whose, and where


async def test_an_agent_stays_in_its_roots(bench, root, tmp_path):
    for asked in ({"cwd": str(tmp_path)}, {"cwd": str(root), "roots": [str(tmp_path)]}):
        with pytest.raises(RefusedError, match=r"outside") as caught:
            await bench.agent().call("files.begin_command", command=["x"], **asked)
        assert caught.value.code == "scope.outside"


async def test_an_agents_link_leads_nowhere(bench, root, tmp_path):
    (root / "out").symlink_to(tmp_path)
    with pytest.raises(RefusedError) as caught:
        await bench.agent().call(
            "files.begin_command", cwd=str(root), roots=[str(root / "out")], command=["x"]
        )
    assert caught.value.code == "files.link"


async def test_an_agent_without_roots_of_its_own_gets_the_granted_one(bench, root):
    (root / "deep" / "er").mkdir(parents=True)
    begun = await bench.agent().call("files.begin_command", cwd=str(root / "deep" / "er"), command=["x"])
    assert begun.roots == [str(root)]


async def test_the_person_gets_the_top_of_the_work_tree(bench, root):
    sh(root, "git init -q .; mkdir -p deep/er")
    begun = await bench.person().call("files.begin_command", cwd=str(root / "deep" / "er"), command=["x"])
    assert begun.roots == [str(root)]


async def test_the_whole_home_is_refused_unless_it_is_named(bench, root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    with pytest.raises(RefusedError) as caught:
        await bench.person().call("files.begin_command", cwd=str(root), command=["x"])
    assert caught.value.code == "files.root_wide"
    assert "--root" in caught.value.hint
    begun = await bench.person().call("files.begin_command", cwd=str(root), roots=[str(root)], command=["x"])
    assert begun.roots == [str(root)]


async def test_a_root_in_another_is_captured_with_it(bench, root):
    (root / "in").mkdir()
    begun = await bench.person().call(
        "files.begin_command", cwd=str(root), roots=[str(root / "in"), str(root)], command=["x"]
    )
    assert begun.roots == [str(root)]


async def test_takebacks_own_home_is_no_root(bench, tmp_path):
    with pytest.raises(RefusedError) as caught:
        await bench.person().call("files.begin_command", cwd=str(tmp_path / "home" / "data"), command=["x"])
    assert caught.value.code == "files.home"


@pytest.mark.parametrize(("name", "error"), [("file", ConflictError), ("absent", NotFoundError)])
async def test_a_root_that_is_no_folder_is_refused(bench, root, name, error):
    (root / "file").write_text("x")
    with pytest.raises(error):
        await bench.agent().call(
            "files.begin_command", cwd=str(root), roots=[str(root / name)], command=["x"]
        )
    with pytest.raises(UsageError):
        await bench.agent().call("files.begin_command", cwd=str(root), roots=["a/../b"], command=["x"])


async def test_a_window_is_ended_by_whoever_began_it_or_the_person(bench, root):
    begun = await bench.agent().call("files.begin_command", cwd=str(root), command=["x"])
    with pytest.raises(NotFoundError) as caught:
        await bench.agent("kim").call("files.end_command", window=begun.window)
    assert caught.value.code == "files.window_unknown"
    (root / "a").write_text("a")
    first = await bench.person().call("files.end_command", window=begun.window)
    again = await bench.agent().call("files.end_command", window=begun.window)
    assert first.act == again.act is not None
    with pytest.raises(NotFoundError):
        await bench.agent("kim").call("files.end_command", window=begun.window)


# ---------------------------------------------------------------------- ends that nobody told


async def test_a_window_whose_process_has_died_is_ended_by_the_next_look(bench, root):
    with subprocess.Popen(["sleep", "60"]) as process:
        begun = await bench.agent().call(
            "files.begin_command", cwd=str(root), command=["make"], process=process.pid
        )
        (root / "a").write_text("a")
        process.kill()
    async with Running(bench.agent(), root) as running:
        (root / "b").write_text("b")
    assert (running.ended.changed, running.ended.coincident) == (1, [])
    first = await bench.agent().call("files.end_command", window=begun.window)
    act = await shown(bench, first.act)
    assert act.input["interrupted"] is True
    assert act.summary.endswith(", interrupted")
    assert [item.resource for item in act.touched] == [bench.uri("a")]


async def test_a_window_goes_on_over_a_restart_while_its_process_lives(tmp_path, root):
    (root / "a").write_text("1")
    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person", session="mine")
        begun = await person.call("files.begin_command", cwd=str(root), command=["make"], process=os.getpid())
        (root / "a").write_text("2")
    (root / "b").write_text("b")
    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person", session="mine")
        (root / "c").write_text("c")
        ended = await person.call("files.end_command", window=begun.window, exit_code=0)
        assert ended.changed == 3
        act = (await person.call("undo.show", id=ended.act)).act
        assert (act.session, act.input["interrupted"]) == ("mine", False)
        await person.call("undo.run", id=ended.act)
    assert [path.read_text() for path in root.iterdir()] == ["1"]


async def test_a_window_that_nobody_can_end_any_more_is_ended_by_the_next_start(tmp_path, root):
    async with _kernel(tmp_path) as kernel:
        agent = kernel.enter("mcp:agent:juno", session="s1", turn="t1", scope=_scope(root))
        await agent.call("files.begin_command", cwd=str(root), command=["make"])
    (root / "a").write_text("a")
    async with _kernel(tmp_path) as kernel:
        agent = kernel.enter("mcp:agent:juno", session="s1", turn="t1", scope=_scope(root))
        # The window's end is waited for by whatever comes next.
        await agent.call("files.begin_command", cwd=str(root), command=["make"])
        (act,) = (await agent.call("undo.list")).acts
        assert (act.agent, act.session, act.turn) == ("juno", "s1", "t1")
        assert act.input["interrupted"] is True
        await agent.call("undo.run", id=act.id)
    assert not (root / "a").exists()


async def test_what_another_command_did_before_a_restart_is_not_counted_to_the_one_that_goes_on(
    tmp_path, root
):
    (root / "a").write_text("1")
    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person")
        async with Running(person, root) as first:
            (root / "a").write_text("2")
            begun = await person.call(
                "files.begin_command", cwd=str(root), command=["watch"], process=os.getpid()
            )
        assert (first.ended.changed, first.ended.coincident) == (1, [])
    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person")
        ended = await person.call("files.end_command", window=begun.window)
        assert (ended.changed, ended.coincident) == (0, [str(root / "a")])


def _kernel(tmp_path):
    return Kernel(tmp_path / "home", settings={}, modules=[UndoModule, FilesModule])


def _scope(root):
    from takeback.context import Scope

    return Scope(roots=(str(root),))


async def test_what_a_baseline_or_an_open_window_counts_on_is_not_swept_away(bench, root, later):
    (root / "small").write_text("small")
    (root / "large").write_bytes(b"x" * 100_000)
    async with Running(bench.agent(), root) as running:
        sh(root, "rm small")
        async with Running(bench.agent("kim"), root):
            pass
        later(10 * 86_400)
        assert (await bench.person().call("files.gc", grace_hours=0)).deleted == 0
        sh(root, "rm large")
    await bench.undo(running.ended.act)
    assert (root / "small").read_text() == "small"
    assert (root / "large").stat().st_size == 100_000


async def test_a_rewind_of_a_path_takes_back_what_touched_it_newest_first(bench, root):
    agent = bench.agent()
    (root / "d").mkdir()
    (root / "d" / "a").write_text("1")
    await agent.call("files.write", path="d/a", content="2")
    await agent.call("files.write", path="other", content="stays")
    async with Running(agent, root):
        sh(root, "rm -r d")
    outcome = await bench.person().call("undo.rewind", resource=bench.uri("d/a"))
    assert len(outcome.results) == 2
    assert (root / "d" / "a").read_text() == "1"
    assert (root / "other").exists()


async def test_what_is_coincident_the_person_may_take_back_path_by_path(bench, root):
    (root / "either").write_text("old")
    async with Running(bench.agent(session="s1"), root):
        async with Running(bench.agent("kim", session="s2"), root):
            (root / "either").write_text("?")
            (root / "both").write_text("?")
    acts = (await bench.person().call("undo.list")).acts
    assert {item.resource for act in acts for item in act.touched} == {bench.uri("either"), bench.uri("both")}
    assert len(acts) == 2
    assert {(act.agent, act.session) for act in acts} == {(None, None)}
    for session in ("s1", "s2"):
        assert (await bench.person().call("undo.rewind", session=session)).results == []
    (chosen,) = (act for act in acts if act.touched[0].resource == bench.uri("either"))
    await bench.undo(chosen.id)
    assert (root / "either").read_text() == "old"
    assert (root / "both").exists()


async def test_a_root_that_was_made_anew_is_captured_anew(bench, root):
    async with Running(bench.agent(), root):
        pass
    sh(root.parent, "rm -r root; mkdir root; echo 1 > root/a")
    async with Running(bench.agent(), root) as running:
        sh(root, "echo 2 > a")
    assert running.ended.changed == 1
    await bench.undo(running.ended.act)
    assert (root / "a").read_text() == "1\n"


async def test_a_crash_between_the_act_and_the_end_of_its_window_counts_nothing_twice(tmp_path, root):
    (root / "a").write_text("1")

    def die(name):
        if name == "files.command_recorded":
            raise RuntimeError("killed")

    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person")
        begun = await person.call("files.begin_command", cwd=str(root), command=["make"])
        (root / "a").write_text("2")
        stop = faults.install(die)
        try:
            with pytest.raises(TakebackError):
                await person.call("files.end_command", window=begun.window)
        finally:
            stop()
    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person")
        ended = await person.call("files.end_command", window=begun.window)
        assert ended.notes == ["what it changed is in the log"]
        assert len((await person.call("undo.list")).acts) == 1


async def test_capture_can_be_switched_off_for_a_root(tmp_path, root):
    off, link = root / "off", tmp_path / "link"
    (off / "inner").mkdir(parents=True)
    link.symlink_to(off)
    settings = {"files": {"not_captured": [str(link)]}}
    async with Kernel(tmp_path / "home", settings=settings, modules=[UndoModule, FilesModule]) as kernel:
        person = kernel.enter("cli:person")
        for folder, captured in ((off, False), (off / "inner", False), (root, True)):
            async with Running(person, folder) as running:
                sh(folder, "printf new > new")
            assert (running.ended.act is not None) is captured
            assert (running.begun.roots == [str(folder)]) is captured
            assert any(note.startswith("not captured") for note in running.begun.notes) is not captured
        act = (await person.call("files.write", path=str(off / "own"), content="x")).act
        await person.call("undo.run", id=act)
        assert not (off / "own").exists()


async def test_every_command_tells_what_was_left_out_while_it_ran(bench, root):
    sh(root, "mkdir -p node_modules d/.venv/bin; touch node_modules/a d/.venv/pyvenv.cfg")
    for _ in range(2):
        async with Running(bench.agent(), root) as running:
            sh(root, "rm -f node_modules/a; date +%N > changed")
        assert running.ended.left_out == [str(root / "d" / ".venv"), str(root / "node_modules")]
        act = await shown(bench, running.ended.act)
        assert act.input["left_out"] == running.ended.left_out


async def test_what_is_mounted_in_a_folder_is_said_to_be_not_captured(bench, root, tmp_path, monkeypatch):
    lines = ("1 0 8:1 / / rw", f"2 1 0:9 / {root}/m rw", f"3 1 8:1 /b {root}/b rw")
    (tmp_path / "mounts").write_text("\n".join(f"{line} - some x rw" for line in lines))
    monkeypatch.setattr(mounts, "_LIST", str(tmp_path / "mounts"))
    async with Running(bench.agent(), root) as running:
        pass
    told = f"not captured: {root / 'm'} is another file system"
    assert told in running.begun.notes
    assert told in running.ended.notes
    assert not any(f"{root}/b" in note for note in running.begun.notes)


@pytest.mark.parametrize("idle", [0.0, 60.0])
async def test_a_folder_is_held_open_no_longer_than_it_is_of_use(tmp_path, root, idle):
    (root / "a").write_text("1")
    settings = {"files": {"idle_seconds": idle}}
    async with Kernel(tmp_path / "home", settings=settings, modules=[UndoModule, FilesModule]) as kernel:
        person = kernel.enter("cli:person")
        async with Running(person, root):
            assert _held(root)
        if idle:
            assert _held(root)
        with anyio.fail_after(10):
            while not idle and _held(root):
                await anyio.lowlevel.checkpoint()
        (root / "a").write_text("2")
        async with Running(person, root) as running:
            (root / "b").write_text("b")
        assert running.ended.changed == 1


def _held(folder):
    """Whether this process has a folder open."""
    about = os.stat(folder)
    for handle in os.listdir("/dev/fd"):
        try:
            found = os.fstat(int(handle))
        except OSError:
            continue  # the listing's own
        if (found.st_dev, found.st_ino) == (about.st_dev, about.st_ino):
            return True
    return False
