"""The process is killed between any two steps: bytes are as before or as after, and the log knows which."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from takeback.kernel import Kernel
from takeback_acts.files import staging
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule

pytestmark = pytest.mark.anyio

MOST = 40
ROOT_SCRIPT = Path(__file__).with_name("crasher.py")


def _fill(root):
    root.mkdir(parents=True)
    (root / "a").write_text("old\n")
    (root / "b").write_bytes(b"\0b" * 50_000)
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "x").write_text("x")
    (root / "d" / "e" / "y").write_text("y")


def _bases(tmp_path):
    bases = [tmp_path / str(number) for number in range(MOST + 1)]
    for base in bases:
        _fill(base / "root")
    return bases


def _crash(bases, act, *, first=(), places=("files.", "undo."), restart=False):
    """With `restart` the act is the person's, in a process that finds the acts before done."""
    job = {"first": list(first), "act": act, "places": places, "restart": restart}
    source = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, str(ROOT_SCRIPT), json.dumps([str(base) for base in bases]), json.dumps(job)],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    total = int(done.stdout)
    assert 5 <= total <= MOST
    return bases[1 : total + 1]


def _temporaries(root):
    return [
        name
        for _, dirs, files in os.walk(root)
        for name in dirs + files
        if staging.is_temporary(name.encode())
    ]


async def _settled(base):
    """Starts again over what the crash left, and tells what the log says of the last act."""
    async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        person = kernel.enter("cli:person")
        acts = (await person.call("undo.list")).acts
        left = await kernel.store.read(
            lambda db: db.execute("SELECT count(*) FROM files_running").fetchone()[0]
        )
    assert left == 0
    return acts


ACTS = {
    "write": ["files.write", {"path": "a", "content": "new\n"}],
    "create": ["files.write", {"path": "n", "content": "new\n"}],
    "delete": ["files.delete", {"path": "d", "recursive": True}],
    "move over": ["files.move", {"path": "a", "to": "b", "overwrite": True}],
    "move folder": ["files.move", {"path": "d", "to": "f"}],
    "make": ["files.make_dir", {"path": "m/n", "parents": True}],
}


@pytest.mark.parametrize("name", ACTS)
async def test_an_act_killed_anywhere_happened_whole_or_not_at_all(tmp_path, name, snapshot):
    bases = _bases(tmp_path)
    before = snapshot(bases[1] / "root", times=False)
    crashed = _crash(bases, ACTS[name])
    after = snapshot(bases[0] / "root", times=False)
    assert before != after
    outcomes = set()
    for base in crashed:
        acts = await _settled(base)
        now = snapshot(base / "root", times=False)
        assert _temporaries(base / "root") == []
        assert now in (before, after)
        state = acts[0].state if acts else "none"
        assert state in (("done",) if now == after else ("none", "abandoned")), base
        outcomes.add(state)
    assert {"done", "abandoned"} <= outcomes


async def test_a_write_killed_between_any_two_commits_as_well(tmp_path, snapshot):
    bases = _bases(tmp_path)
    before = snapshot(bases[1] / "root", times=False)
    crashed = _crash(bases, ACTS["write"], places=["store.", "files."])
    after = snapshot(bases[0] / "root", times=False)
    for base in crashed:
        acts = await _settled(base)
        now = snapshot(base / "root", times=False)
        assert _temporaries(base / "root") == []
        assert now == (after if acts and acts[0].state == "done" else before)


async def test_an_undo_of_many_files_killed_anywhere_is_whole_or_not_at_all(tmp_path, snapshot):
    bases = _bases(tmp_path)
    for base in bases:
        for number in range(20):
            (base / "root" / f"many{number}").write_text(f"{number}\n")
    before = snapshot(bases[1] / "root", times=False)
    change = ["sh", "for one in many*; do echo more >> $one; done"]
    crashed = _crash(bases, ["undo.rewind", {"session": "s1"}], first=[change], places=("files.",))
    assert snapshot(bases[0] / "root", times=False) == before
    found = set()
    for base in crashed:
        await _settled(base)
        now = [(base / "root" / f"many{number}").read_text() for number in range(20)]
        assert _temporaries(base / "root") == []
        found.add(now == [f"{number}\n" for number in range(20)])
        assert all(text.endswith("more\n") for text in now) or all("more" not in text for text in now)
    assert found == {True, False}


async def test_an_act_on_many_files_killed_while_they_are_packed_as_well(tmp_path, snapshot):
    """Between the packs and the row that names what is there, too."""
    bases = _bases(tmp_path)
    for base in bases:
        for number in range(50):
            (base / "root" / "d" / f"{number}").write_text(f"content {number}")
        (base / "root" / "d" / "large").write_bytes(b"large" * 30_000)
    before = snapshot(bases[1] / "root", times=False)
    crashed = _crash(bases, ACTS["delete"], places=["packs.", "files."])
    after = snapshot(bases[0] / "root", times=False)
    states = set()
    for base in crashed:
        acts = await _settled(base)
        now = snapshot(base / "root", times=False)
        states.add(acts[0].state if acts else "none")
        assert now == (after if acts and acts[0].state == "done" else before)
        await _rewound(base)
        assert snapshot(base / "root", times=False) == before
    assert states == {"none", "abandoned", "done"}


async def test_a_move_of_kept_bytes_killed_anywhere_loses_none(tmp_path, snapshot):
    """And the sweep that follows it."""
    bases = _bases(tmp_path)
    before = snapshot(bases[1] / "root", times=False)
    first = [ACTS["write"], ACTS["delete"], ACTS["move over"]]
    places = ["files.landing", "packs.append", "packs.synced", "packs.sealed", "packs.file", "store."]
    crashed = _crash(bases, ["files.gc", {"grace_hours": 0}], first=first, places=places, restart=True)
    assert "files.landing.kept" in (bases[0] / "places").read_text()
    for base in crashed:
        await _rewound(base)
        assert snapshot(base / "root", times=False) == before


async def _rewound(base):
    async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        await kernel.enter("cli:person").call("undo.rewind", session="s1")


async def test_an_undo_of_several_paths_killed_anywhere_is_whole_or_not_at_all(tmp_path, snapshot):
    bases = _bases(tmp_path)
    before = snapshot(bases[1] / "root", times=False)
    first = [ACTS["move over"]]
    crashed = _crash(bases, ["undo.rewind", {"session": "s1"}], first=first)
    for base in crashed:
        acts = await _settled(base)
        now = snapshot(base / "root", times=False)
        assert _temporaries(base / "root") == []
        (act,) = [one for one in acts if one.tool == "files.move"]
        assert (now == before) == (act.state == "undone"), (base, act.state)


async def test_what_a_crash_left_is_never_removed_when_nobody_knows_it(tmp_path, root):
    """A stranger's bytes lie at one of our temporary names: they come to light beside where they were."""
    (root / "a").write_text("agent")
    temp = root / ".takeback-0123456789abcdef"
    temp.write_text("the stranger's")
    state = {"kind": "file", "mode": 0o644, "sha256": "00" * 32, "size": 1}
    uri = "files:" + str(root)
    script = {
        "wants": [[uri + "/a", state]],
        "steps": [[uri + "/" + temp.name, uri + "/a", True]],
        "temps": [[uri + "/" + temp.name, uri + "/a", [state]]],
    }
    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        row = ("k", json.dumps(script))
        await kernel.store.transaction(lambda tx: tx.execute("INSERT INTO files_running VALUES (?, ?)", row))
    await _settled(tmp_path)
    assert (root / "a").read_text() == "agent"
    (kept,) = [name for name in os.listdir(root) if name != "a"]
    assert kept.startswith("a.kept-")
    assert (root / kept).read_text() == "the stranger's"
