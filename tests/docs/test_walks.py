"""The pages are walked: README's steps as a newcomer types them, and the examples as they stand."""

import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from takeback import ConflictError, Kernel, NotFoundError, UsageError
from takeback.sources import Source
from takeback_core.undo.module import UndoModule
from tests.docs import blocks, sources

README = sources.ROOT / "README.md"
MODULES = sources.ROOT / "docs" / "modules.md"
TROUBLESHOOTING = sources.ROOT / "docs" / "troubleshooting.md"
ADDRESS = "http://127.0.0.1:7420/mcp"

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------------- README


class Newcomer:
    """A checkout with its `.venv`, a terminal in it, and a home where nothing has been."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self._checkout = place / "checkout"
        for folder in (self.home, self._checkout):
            folder.mkdir()
        (self._checkout / ".venv").symlink_to(sys.prefix)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TAKEBACK_", "XDG_"))}
        # Another program may have the usual port.
        self._environment = {**kept, "HOME": str(self.home), "TAKEBACK_MCP__PORT": "0"}

    async def types(self, script: str) -> str:
        """What a script prints; it must succeed."""
        command = ["sh", "-ec", script]
        with anyio.fail_after(60):
            ran = await anyio.run_process(
                command, cwd=self._checkout, env=self._environment, stderr=subprocess.PIPE, check=False
            )
        assert ran.returncode == 0, f"{script}\n{ran.stdout.decode()}\n{ran.stderr.decode()}"
        return ran.stdout.decode()

    async def address(self) -> str:
        """Where the daemon's door is."""
        status = json.loads(await self.types(".venv/bin/takeback status --json"))
        return str(status["mcp"]["url"])


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path, which a socket's name needs."""
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:
        yield Path(folder).resolve()


async def test_readme_takes_an_act_back(place):
    newcomer = Newcomer(place)
    play = newcomer.home / "takeback-play"
    find, add, stdio, http, act, over_http, undo, rewind, command, leave = _steps()
    try:
        assert (await newcomer.types(f"{find}takeback version")).startswith("takeback ")
        await newcomer.types(add)
        assert (play / "notes.md").read_text() == "The first line.\n"
        await newcomer.types(stdio)
        await newcomer.types(http.replace(ADDRESS, await newcomer.address()))
        await newcomer.types(act)
        assert "files.write" in await newcomer.types(over_http.replace(ADDRESS, await newcomer.address()))
        assert sorted(path.name for path in play.iterdir()) == ["poem.md"]
        assert (await newcomer.types(undo)).endswith("The second line.\n")
        assert (await newcomer.types(rewind)).splitlines()[-1] == "notes.md"
        assert (play / "notes.md").read_text() == "The first line.\n"
        assert (await newcomer.types(command)).splitlines()[-1] == "notes.md"
        assert (play / "notes.md").read_text() == "The first line.\n"
        assert "files.write" in await _tools_over_http(newcomer.home / "takeback-http.json")
        await newcomer.types(leave)
        assert not [path for path in newcomer.home.iterdir() if not path.name.startswith((".", "Library"))]
    finally:
        await newcomer.types(".venv/bin/takeback stop")


def _steps() -> list[str]:
    steps = [block.code for block in blocks.blocks(README, "sh") if block.note == "run"]
    assert [ADDRESS in step for step in steps].count(True) == 2
    return steps


async def _tools_over_http(config: Path) -> list[str]:
    assert config.stat().st_mode & 0o077 == 0
    server = json.loads(config.read_text())["mcpServers"]["takeback"]
    async with httpx2.AsyncClient(headers=server["headers"]) as http:
        async with Client(streamable_http_client(server["url"], http_client=http)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]


async def test_removing_takeback_leaves_nothing(place):
    newcomer = Newcomer(place)
    system = "macos" if sys.platform == "darwin" else "linux"
    (remove,) = [block.code for block in blocks.blocks(TROUBLESHOOTING) if block.note == f"run: {system}"]
    await newcomer.types(".venv/bin/takeback agents add juno")
    assert [path for path in newcomer.home.rglob("takeback*") if path.is_dir()]
    await newcomer.types(f'PATH="$PWD/.venv/bin:$PATH"\n{remove}')
    assert not list(newcomer.home.rglob("*takeback*"))
    assert (await newcomer.types(".venv/bin/takeback status")).split()[:3] == ["Daemon", "not", "running"]


async def test_readme_uses_the_kernel_as_a_library(tmp_path):
    (example,) = [block.code for block in blocks.blocks(README, "python") if block.note == "run: python"]
    script = tmp_path / "library.py"
    script.write_text(example)
    folder = tmp_path / "folder"
    folder.mkdir()
    await runpy.run_path(str(script))["main"](str(tmp_path / "home"), str(folder))
    assert list(folder.iterdir()) == []
    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule]) as kernel:
        acts = (await kernel.enter("cli:person").undo.list()).acts
    assert [(act.tool, act.state) for act in acts] == [("undo.run", "done"), ("files.write", "undone")]


# ---------------------------------------------------------------------- the module of docs/modules.md


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with the files of the page."""
    for name, code in blocks.files(MODULES).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    return tmp_path


async def test_labels_print_what_the_page_says(written):
    script = written / "try_labels.py"
    told = re.findall(r"print\(.+\)  # (.+)$", script.read_text(), re.M)
    ran = await anyio.run_process([sys.executable, "-W", "error", str(script)], cwd=written)
    assert ran.stdout.decode().splitlines() == told
    assert len(told) == 4


async def test_labels_are_undone_and_redone(written):
    async with Kernel(
        written / "home", settings={"labels": {"longest": 5}}, modules=[UndoModule, written / "labels"]
    ) as kernel:
        me, juno = kernel.enter("cli:person"), kernel.enter("mcp:agent:juno", session="s1")
        with pytest.raises(UsageError, match="too long"):
            await juno.labels.set(name="color", text="purple")
        first = await juno.labels.set(name="color", text="blue")
        second = await juno.labels.set(name="color", text=None)
        assert (await juno.labels.set(name="color", text=None)).act is None
        await me.undo.run(id=second.act)
        assert (await me.labels.get(name="color")).text == "blue"
        await me.undo.redo(id=second.act)
        assert (await me.labels.get(name="color")).text is None
        await me.undo.rewind(session="s1")
        assert (await me.undo.run(id=first.act)).results[0].already
        kinds = [event.kind for event in await kernel.events.after(0)]
        assert kinds.count("labels.changed") == 6


async def test_labels_keep_what_a_stranger_wrote(written):
    async with Kernel(written / "home", settings={}, modules=[UndoModule, written / "labels"]) as kernel:
        me, juno = kernel.enter("cli:person", present=True), kernel.enter("mcp:agent:juno")
        made = await juno.labels.set(name="color", text="blue")
        await kernel.store.transaction(lambda tx: tx.execute("UPDATE labels SET text = 'mine'"))
        with pytest.raises(ConflictError, match="changed it since"):
            await me.undo.run(id=made.act)
        assert (await me.labels.get(name="color")).text == "mine"
        forced = await me.undo.run(id=made.act, force=True)
        assert (await me.labels.get(name="color")).text is None
        await me.undo.redo(id=forced.act)
        assert (await me.labels.get(name="color")).text == "mine"


async def test_labels_of_an_added_module_need_trust(written):
    labels = Source.at(written / "labels", builtin=False)
    async with Kernel(written / "home", settings={}, modules=[UndoModule, labels]) as kernel:
        me = kernel.enter("cli:person")
        with pytest.raises(NotFoundError, match="Unknown tool"):
            await me.labels.set(name="color", text="blue")
        assert (await me.labels.get(name="color")).text is None
        await kernel.enter("cli:person", present=True).kernel.trust(name="labels")
        done = await me.labels.set(name="color", text="blue")
        await me.undo.run(id=done.act)
        assert (await me.labels.get(name="color")).text is None
