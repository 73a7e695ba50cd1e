"""Paths as a person at a terminal calls them."""

import json
from pathlib import Path

import pytest

from takeback_doors.cli import paths
from tests.cli.running import Cli


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person who stands in its folder `work`."""
    home = tmp_path.resolve()
    (home / "work").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    paths._here.cache_clear()
    paths._home.cache_clear()
    return home


def test_a_path_is_told_from_where_the_person_stands(person: Path):
    assert paths.near(f"{person}/work/docs/a.md") == "docs/a.md"
    assert paths.near(f"{person}/workshop/a.md") == "~/workshop/a.md"
    assert paths.near(f"{person}-else/a.md") == f"{person}-else/a.md"
    assert paths.near("/etc/hosts") == "/etc/hosts"


def test_at_the_root_a_path_keeps_its_first_slash(person: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", "/")
    assert paths.near("/etc/hosts") == "/etc/hosts"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/srv/a/notes.md", "/srv/a/notes.md"),
        ("/srv/one/two/three/notes.md", "/srv/…/three/notes.md"),
        (
            "/srv/one/two/three/a-name-that-is-longer-than-the-room.md",
            "/srv/…/a-name-that-is-longer-than-the-room.md",
        ),
        ("/a-name-that-is-longer-than-the-room.md", "/a-name-that-is-longer-than-the-room.md"),
    ],
)
def test_the_middle_of_a_long_path_goes_first(person: Path, path: str, shown: str):
    assert paths.brief(path, 22) == shown


def test_a_near_path_keeps_where_it_begins(person: Path):
    assert paths.brief(f"{person}/work/docs/one/two/three/notes.md", 22) == "docs/…/three/notes.md"
    assert paths.brief(f"{person}/docs/one/two/three/notes.md", 22) == "~/…/two/three/notes.md"


def test_words_name_their_resources_briefly(person: Path):
    resources = [f"files:{person}/work/a%20b.md", f"files:{person}/work/a%20b.md.old"]
    words = f"Moved {person}/work/a b.md to {person}/work/a b.md.old"
    assert paths.in_words(words, resources, 30) == "Moved a b.md to a b.md.old"
    assert paths.in_words(f"undo: Created {person}/x.md", (), 30) == "undo: Created ~/x.md"
    assert paths.in_words("Set skill 7", ["rows:main/skill/7"], 30) == "Set skill 7"


def test_the_log_tells_near_paths_and_json_whole_ones(served: Cli):
    path = served.work / "near.txt"
    given = json.dumps({"path": str(path), "content": "x"})
    act = served.json("tools", "call", "files.write", given)["result"]["act"]
    assert "Created near.txt" in served.run("log").out
    assert "delete near.txt" in served.run("undo", act, "--dry-run").out
    assert str(path) in served.run("show", act).out.replace("\n", "")
    assert served.json("log")["acts"][0]["summary"] == f"Created {path}"
