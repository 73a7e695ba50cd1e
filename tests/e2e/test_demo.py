"""The main job, whole: a real daemon, a real MCP client, real commands, and hashes that decide."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from takeback_doors.cli.demo import story, tree
from takeback_doors.cli.demo.promise import BrokenPromiseError

COMMAND = [sys.executable, "-m", "takeback_doors.cli", "demo"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where temporary files go; its name is short, so that sockets lie within it."""
    made = Path(tempfile.mkdtemp(prefix="tb-"))
    yield made
    shutil.rmtree(made)


def nothing_is_left(folder: Path) -> bool:
    """Whether there is neither a file nor a process of the demo's any more."""
    shown = subprocess.run(["ps", "axeww"], capture_output=True, text=True, check=True).stdout
    return not list(folder.iterdir()) and f"TAKEBACK_HOME={folder}" not in shown


def test_the_demo_tells_its_story_and_keeps_its_promises(folder: Path) -> None:
    # What the person has set for their own takeback is none of the demo's.
    environment = {**os.environ, "TMPDIR": str(folder), "TAKEBACK_UNDO__NONSENSE": "1"}
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "byte for byte as before juno" in done.stdout
    assert "1 merge" in done.stdout
    assert len(done.stdout.splitlines()) < 60
    assert nothing_is_left(folder)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", ["You let an agent", "1. What juno did", "2. What undo would do"])
def test_the_demo_leaves_nothing_when_it_is_interrupted(folder: Path, by: signal.Signals, after: str) -> None:
    with subprocess.Popen(
        COMMAND,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        # Whoever runs the tests in the background ignores Ctrl-C, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as demo:
        assert demo.stdout is not None
        assert any(line.startswith(after) for line in demo.stdout)
        os.killpg(demo.pid, by)
        assert demo.wait(60) == 130
    assert nothing_is_left(folder)


def test_the_demo_leaves_nothing_when_it_fails(folder: Path) -> None:
    broken = (
        "import sys; from takeback_doors.cli import main; from takeback_doors.cli.demo import juno;"
        "juno.TURNS = (); sys.exit(main.run(['demo']))"
    )
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", broken], env=environment, capture_output=True, timeout=100)
    assert done.returncode == 1
    assert nothing_is_left(folder)


def test_the_demo_would_notice_a_broken_promise(tmp_path: Path) -> None:
    """A check that can't fail would prove nothing."""
    tree.sample(tmp_path)
    before = tree.fingerprint(tmp_path)
    page = tmp_path / "docs" / sorted(path.name for path in (tmp_path / "docs").glob("*.md"))[-1]
    page.write_text(page.read_text() + story._LINE)
    teller = story.Story(lambda text: None)
    teller._check(tmp_path, before, page)
    (tmp_path / "kernel" / "build.sh").chmod(0o644)
    page.write_text(page.read_text() + story._LINE)
    with pytest.raises(BrokenPromiseError, match=r"build\.sh"):
        teller._check(tmp_path, before, page)


def test_a_fingerprint_sees_bytes_modes_links_and_empty_folders(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("a")
    (tmp_path / "link").symlink_to("file")
    before = tree.fingerprint(tmp_path)
    (tmp_path / "empty").rmdir()
    (tmp_path / "file").write_text("b")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("elsewhere")
    assert tree.differences(before, tree.fingerprint(tmp_path)) == ["empty", "file", "link"]
