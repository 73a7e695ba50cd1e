"""The main job, whole: a real daemon, a real MCP client, real commands, and hashes that decide."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from takeback_doors.cli.demo import story, tree


def test_the_demo_tells_its_story_and_keeps_its_promises(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "takeback_doors.cli", "demo"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "byte for byte as before juno" in done.stdout
    assert "1 merge" in done.stdout
    assert list(tmp_path.iterdir()) == []  # nothing is left lying about


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
    with pytest.raises(story.BrokenPromiseError, match=r"build\.sh"):
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
