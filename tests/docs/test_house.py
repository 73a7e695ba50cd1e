"""The distribution is whole: what is pinned, what is announced, what a wheel carries."""

import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import takeback
from takeback.manifest import read_manifest
from tests.docs import sources

_PIN = re.compile(r"([a-z0-9-]+)==([0-9][0-9a-z.+]*)")


def _lines() -> list[str]:
    lines = (sources.ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_constraints_are_names_and_versions_and_nothing_else():
    odd = [line for line in _lines() if not _PIN.fullmatch(line)]
    assert not odd
    assert "://" not in (sources.ROOT / "constraints.txt").read_text()
    assert _lines() == sorted(set(_lines()), key=lambda line: line.partition("==")[0])


def test_all_that_set_up_installs_is_pinned():
    project = sources.project()
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["test"],
        *project["build-system"]["requires"],
        "editables",
    ]
    pinned = {line.partition("==")[0] for line in _lines()}
    assert _closure(wanted) - pinned == set()


def _closure(wanted: list[str]) -> set[str]:
    found: set[str] = set()
    stated = map(Requirement, wanted)
    queue = [one for one in stated if one.marker is None or one.marker.evaluate()]
    while queue:
        requirement = queue.pop()
        extras = sorted(requirement.extras) or [""]
        name = canonicalize_name(requirement.name)
        if name in found and not requirement.extras:
            continue
        found.add(name)
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                queue.append(needed)
    return found


def test_every_module_folder_is_announced_and_says_the_same_of_itself():
    folders = {path.parent for path in sources.MODULES.rglob("module.toml")}
    rooms = {path.parent for path in sources.MODULES.glob("takeback_*/*/__init__.py")}
    assert folders == rooms, "a room of modules/ without its module.toml, or one without its __init__.py"
    announced = {
        name: sources.MODULES / Path(*entry.partition(":")[0].split(".")[:-1])
        for name, entry in sources.entry_points().items()
    }
    assert {read_manifest(folder).name: folder for folder in folders} == announced


def test_packages_import_nothing_heavy():
    heavy = {"pydantic", "mcp", "click", "rich", "anyio", "uvicorn", "starlette", "aiosqlite", "sqlite3"}
    script = "import sys, takeback, takeback_core, takeback_acts, takeback_doors; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert heavy & set(ran.stdout.split()) == set()


def test_version_is_said_the_same_everywhere():
    assert takeback.__version__ == sources.project()["project"]["version"]


def test_wheel_carries_the_manifests_and_no_tests(tmp_path: Path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=sources.ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    manifests = {str(path.relative_to(sources.MODULES)) for path in sources.MODULES.rglob("module.toml")}
    assert manifests | {"takeback/py.typed", "takeback_doors/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "kernel/", "modules/"))]
