"""Whatever commands did to modes, owners and contents of a small tree: it all goes back, and comes again."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from tests.files.capture.rig import snapshot
from tests.files.conftest import Bench
from tests.files.test_commands import Running

PATHS = st.sampled_from(["", "a", "a/b", "a/b/f", "a/g", "c", "h"])
MODES = st.sampled_from([0o700, 0o755, 0o500, 0o1777, 0o000, 0o644])


def _mode(path, mode, _):
    if not path.is_symlink():
        path.chmod(mode)


def _give(path, mode, _):
    os.chown(path, mode % 5 if os.geteuid() == 0 else -1, -1, follow_symlinks=False)


def _write(path, mode, _):
    path.write_text(oct(mode))


def _folder(path, mode, _):
    path.mkdir(mode)


def _remove(path, _, __):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _rename(path, _, other):
    path.rename(other)


def _point(path, mode, _):
    path.symlink_to(oct(mode))


DEEDS = st.tuples(
    st.sampled_from([_mode, _mode, _mode, _give, _give, _write, _folder, _remove, _rename, _point]),
    PATHS,
    MODES,
    PATHS,
)
COMMANDS = st.lists(st.lists(DEEDS, min_size=1, max_size=5), min_size=1, max_size=4)


def _do(root, deeds):
    for deed, path, mode, other in deeds:
        if path or deed in (_mode, _give):
            with contextlib.suppress(OSError):
                deed(root / path, mode, root / other)


def _grow(root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "f").write_text("f")
    (root / "a" / "g").write_text("g")
    (root / "c").mkdir()


async def _there_and_back(place, commands):
    root = place / "root"
    root.mkdir()
    _grow(root)
    states = [snapshot(root)]
    async with Kernel(place / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        bench, acts = Bench(kernel, root), []
        for deeds in commands:
            async with Running(bench.agent(), root) as running:
                _do(root, deeds)
            states.append(snapshot(root))
            acts.append(running.ended.act)
            # What may be the only copy of something is named, and left.
            assume(not any("it stays" in note for note in running.ended.notes))
            assert (running.ended.act is None) == (states[-1] == states[-2])
        if not any(acts):
            return
        person = bench.person()
        plan = (await person.call("undo.preview", session="s1")).plan
        assert set(plan.counts) == {"clean"}
        undone = await person.call("undo.rewind", session="s1", digest=plan.digest)
        assert snapshot(root) == states[0]
        await person.call("undo.redo", id=undone.act)
        assert snapshot(root) == states[-1]
        for act, before in reversed(list(zip(acts, states, strict=False))):
            if act is not None:
                await bench.undo(act)
            assert snapshot(root) == before


@settings(max_examples=30)
@given(COMMANDS)
def test_all_that_commands_did_goes_back_and_comes_again(commands):
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(_there_and_back(Path(place), commands))
