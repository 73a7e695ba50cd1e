"""Roots: which folders the person can grant."""

import os

import pytest

from takeback import Home, Kernel, RefusedError
from takeback_core.agents.module import AgentsModule

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path):
    return Home.at(tmp_path / "home")


@pytest.fixture
async def person(home):
    async with Kernel(home, modules=[AgentsModule]) as kernel:
        yield kernel.enter("cli:person")


async def roots_of(person, *roots):
    return (await person.call("agents.add", {"name": "juno", "roots": list(roots)})).agent.roots


async def test_a_folder_is_stored_as_what_it_really_is(person, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    real = os.path.realpath(tmp_path / "docs")
    assert await roots_of(person, f"{tmp_path}/link/../docs/", f"{tmp_path}/link", f"{tmp_path}//docs") == [
        real
    ]


async def test_the_name_it_was_granted_by_takes_it_away(person, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    await roots_of(person, f"{tmp_path}/link")
    changed = await person.call("agents.withdraw", {"name": "juno", "root": f"{tmp_path}/link/"})
    assert changed.agent.roots == []


@pytest.mark.parametrize(
    "root",
    ["", ".", "docs", "~", "~/docs", "../docs", "/no/such/folder", "/dev/null", "/etc/passwd", "/tmp\0x"],
)
async def test_what_is_no_folder(person, root):
    with pytest.raises(RefusedError) as caught:
        await roots_of(person, root)
    assert caught.value.code == "agent.root"
    assert caught.value.hint
    assert (await person.call("agents.list")).agents == []


@pytest.mark.parametrize("part", ["", "data", "state", "config", "runtime", "data/inner"])
async def test_takebacks_own_folders(person, home, part, tmp_path):
    folder = tmp_path / "home" / part
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.raises(RefusedError, match=r"agent\.root"):
        await roots_of(person, str(folder))


async def test_what_holds_takebacks_own_folders(person, tmp_path):
    for folder in (str(tmp_path), "/"):
        with pytest.raises(RefusedError, match="takeback's own"):
            await roots_of(person, folder)


async def test_a_link_to_takebacks_own_folders(person, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "link").symlink_to(tmp_path / "home" / "data")
    with pytest.raises(RefusedError, match="takeback's own"):
        await roots_of(person, str(tmp_path / "outside" / "link"))


async def test_a_home_that_is_itself_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with Kernel(tmp_path / "link", modules=[AgentsModule]) as kernel:
        with pytest.raises(RefusedError, match="takeback's own"):
            await roots_of(kernel.enter("cli:person"), str(tmp_path / "real"))


async def test_a_neighbour_with_a_like_name_is_fine(person, tmp_path):
    for name in ("home-evil", "hom"):
        (tmp_path / name).mkdir()
        await person.call("agents.add", {"name": name, "roots": [str(tmp_path / name)]})


async def test_doctor_says_which_root_is_gone(person, tmp_path):
    (tmp_path / "docs").mkdir()
    await roots_of(person, str(tmp_path / "docs"))

    async def bad():
        return [check for check in (await person.call("kernel.doctor")).checks if not check.ok]

    assert await bad() == []
    (tmp_path / "docs").rmdir()
    (found,) = await bad()
    assert "juno" in found.name
    assert "withdraw" in found.hint
