"""Any story of acts, taken back whole, leaves the folder as it was; what others wrote meanwhile survives."""

import os
import tempfile
from pathlib import Path

import anyio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takeback.context import Scope
from takeback.errors import TakebackError
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule

PATHS = st.sampled_from(["a", "b", "d", "d/a", "d/e", "d/e/a", "f"])
TEXTS = st.sampled_from(["", "one\n", "two\n", "\0"])
ACTS = st.one_of(
    st.fixed_dictionaries({"tool": st.just("write"), "path": PATHS, "content": TEXTS}),
    st.fixed_dictionaries(
        {"tool": st.just("write"), "path": PATHS, "content": TEXTS, "executable": st.booleans()}
    ),
    st.fixed_dictionaries({"tool": st.just("edit"), "path": PATHS, "old": st.just("o"), "new": TEXTS}),
    st.fixed_dictionaries({"tool": st.just("make_dir"), "path": PATHS, "parents": st.booleans()}),
    st.fixed_dictionaries({"tool": st.just("delete"), "path": PATHS, "recursive": st.booleans()}),
    st.fixed_dictionaries({"tool": st.just("move"), "path": PATHS, "to": PATHS, "overwrite": st.booleans()}),
)
FOREIGN = st.fixed_dictionaries({"tool": st.just("person"), "path": PATHS})


def _told(story, snapshot, check):
    """Runs a story over a fresh folder, then `check`."""

    async def run(base):
        root = base / "root"
        (root / "d").mkdir(parents=True)
        (root / "a").write_text("first\n")
        (root / "d" / "a").write_bytes(b"\0first")
        (root / "f").symlink_to("a")
        before = snapshot(root, times=False)
        async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
            agent = kernel.enter("mcp:agent:juno", session="s", turn="t", scope=Scope(roots=(str(root),)))
            written = [await _tell(dict(step), agent, root, number) for number, step in enumerate(story)]
            await check(kernel, root, before, [text for text in written if text])

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder).resolve())


async def _tell(step, agent, root, number):
    tool = step.pop("tool")
    if tool == "person":
        return _write_by_hand(root / step["path"], f"person {number}\n")
    if code := await _code(agent.call("files." + tool, step)):
        assert code[0] != "call.crashed"
    return None


async def _code(call):
    """Code and kind of the error that a call ends with, if it does."""
    try:
        await call
    except TakebackError as error:
        return error.code, error.kind
    return None


def _write_by_hand(path, text):
    """The person's own editor: a file with words that stand nowhere else."""
    if path.is_dir() or path.is_symlink() or not path.parent.is_dir():
        return None
    path.write_text(text)
    return text


def _words(root):
    return "".join(
        Path(folder, name).read_text(errors="replace")
        for folder, _, names in os.walk(root)
        for name in names
        if not Path(folder, name).is_symlink()
    )


@settings(max_examples=60)
@given(story=st.lists(ACTS, min_size=1, max_size=10))
@example(
    story=[
        {"tool": "write", "path": "d/a", "content": "one\n"},
        {"tool": "move", "path": "d", "to": "a", "overwrite": True},
        {"tool": "write", "path": "d", "content": "two\n"},
    ]
)
@example(
    story=[
        {"tool": "write", "path": "d/a", "content": "one\n"},
        {"tool": "move", "path": "f", "to": "d", "overwrite": True},
    ]
)
def test_taking_everything_back_gives_the_first_state_and_redo_the_last(story):
    from tests.files.conftest import _snapshot

    async def check(kernel, root, before, written):
        after = _snapshot(root, times=False)
        person = kernel.enter("cli:person")
        plan = (await person.call("undo.preview", session="s")).plan
        assert {step.status for step in plan.steps} <= {"clean"}
        done = await person.call("undo.rewind", session="s", digest=plan.digest)
        assert _snapshot(root, times=False) == before
        if done.act is not None:
            await person.call("undo.redo", id=done.act)
            assert _snapshot(root, times=False) == after

    _told(story, _snapshot, check)


@settings(max_examples=60)
@given(story=st.lists(st.one_of(ACTS, ACTS, FOREIGN), min_size=2, max_size=10))
def test_what_the_person_wrote_meanwhile_survives_any_undo(story):
    from tests.files.conftest import _snapshot

    async def check(kernel, root, before, written):
        standing = [text for text in written if text in _words(root)]
        as_it_was = _snapshot(root)
        person = kernel.enter("cli:person")
        plan = (await person.call("undo.preview", session="s")).plan
        if code := await _code(person.call("undo.rewind", session="s", digest=plan.digest)):
            assert code[1] == "conflict"
            assert {step.status for step in plan.steps} - {"clean", "merge"}
            assert _snapshot(root) == as_it_was
        for text in standing:
            assert text in _words(root)

    _told(story, _snapshot, check)
