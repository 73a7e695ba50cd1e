"""What the pages show is so: commands, samples, tables, files."""

import importlib
import inspect
import json
import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import click
import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from takeback import hookspecs, tool
from takeback.callers import CallerKind
from takeback.context import Context
from takeback.home import Home
from takeback.kernel import Kernel
from takeback.lives import State as ModuleState
from takeback.manifest import Manifest
from takeback.tools import REACHES
from takeback_acts.files.judging import Action
from takeback_core.undo.models import Act, State, Status
from takeback_doors.cli.main import cli
from tests.docs import blocks, pages, sources

DOCS = sources.ROOT / "docs"
PAGES = sorted([*sources.ROOT.glob("*.md"), *DOCS.rglob("*.md")])
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(sources.ROOT)))

_TREES = ("kernel/", "modules/", "tests/", "docs/", "scripts/", "benchmarks/", ".ci/")


@each_page
def test_commands_are_understood(page: Path):
    shown = [words for block in blocks.blocks(page, "sh") for words in blocks.commands(block.code)]
    assert [wrong for words in shown if (wrong := _complaint(words))] == []


@each_page
def test_commands_within_lines_name_what_there_is(page: Path):
    shown = [code.split() for code in blocks.inline(page)]
    assert [wrong for words in shown if len(words) > 1 and (wrong := _unknown(words))] == []


@each_page
def test_samples_are_well_formed(page: Path):
    for block in blocks.blocks(page):
        if block.kind == "json":
            json.loads(block.code)
        elif block.kind == "toml":
            tomllib.loads(block.code)
        elif block.kind == "python":
            compile(block.code, str(page), "exec")


@each_page
def test_files_that_are_named_are_there(page: Path):
    named = [code for code in blocks.inline(page) if code.startswith(_TREES) and "*" not in code]
    assert [path for path in named if not (sources.ROOT / path.split()[0]).exists()] == []


@each_page
def test_addresses_are_of_this_machine(page: Path):
    hosts = re.findall(r"https?://([^/\s:`\"']+)", page.read_text())
    assert set(hosts) <= {"127.0.0.1", "localhost"}


def test_states_are_those_of_the_code():
    assert _first_cells("concepts.md", "States") == _names(get_args(State))


def test_statuses_are_those_of_the_code():
    assert _first_cells("concepts.md", "Plans") == _names(get_args(Status))


def test_effects_are_those_of_the_code():
    assert _first_cells("concepts.md", "Effects") == _names(get_args(Action))


def test_actor_kinds_are_those_of_the_code():
    kinds = get_args(Act.model_fields["actor_kind"].annotation)
    assert _first_cells("concepts.md", "Who acted") == _names(kinds)
    assert set(get_args(CallerKind)) <= set(kinds)


def test_module_states_are_those_of_the_code():
    assert _first_cells("troubleshooting.md", "A module doesn't run") == _names(get_args(ModuleState))


@pytest.mark.parametrize(("column", "system"), [(1, Unix), (2, MacOS)])
def test_folders_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch, column: int, system: type[Any]):
    monkeypatch.setattr(platformdirs, "PlatformDirs", system)
    monkeypatch.setenv("HOME", "/me")
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    cells = pages.rows(DOCS / "troubleshooting.md")["Where takeback keeps things"]
    written = {row[0]: row[column].replace("~", "/me") for row in cells}
    assert written == {name: str(path) for name, path in Home.of({})._asdict().items()}


def test_reach_is_that_of_the_code():
    assert _first_cells("modules.md", "Reach") == _names(REACHES)


def test_arguments_of_tool_are_those_of_the_code():
    taken = set(inspect.signature(tool).parameters) - {"reach"}
    assert _first_cells("modules.md", "Tools") == _names(taken | {"reach"})


def test_manifest_keys_are_those_of_the_code():
    assert _first_cells("modules.md", "The manifest") == _names(field.name for field in fields(Manifest))


def test_hooks_are_those_of_the_code():
    specs = [name for name, made in vars(hookspecs).items() if hasattr(made, f"{hookspecs.PROJECT}_spec")]
    assert specs
    assert _first_cells("modules.md", "Ship it") == _names(specs)


def test_context_attributes_are_those_of_the_code():
    cells = pages.rows(DOCS / "modules.md")["The context"]
    named = {name for row in cells for name in re.findall(r"\w+", row[0])}
    inner = {"router", "id", "calls", "holder", "deadline"}
    assert named == set(Context._fields) - inner


def test_events_are_those_of_the_code():
    (said,) = re.findall(r"^Undo tells .+?\.$", (DOCS / "modules.md").read_text(), re.M)
    assert set(re.findall(r"`([\w.]+)`", said)) == _event_kinds()


def test_options_of_agents_add_are_those_of_the_command():
    written = {row[0].split()[0] for row in pages.rows(DOCS / "agents.md")["Add one"]}
    assert written == _options("agents", "add")


@pytest.mark.anyio
async def test_tools_of_an_agent_are_those_it_reaches(tmp_path):
    modules = [sources.module_class(entry) for entry in sources.entry_points().values()]
    acting = [made for made in modules if made.__module__.split(".")[0] != "takeback_doors"]
    async with Kernel(tmp_path, settings={}, modules=acting) as kernel:
        reached = {spec.name for spec in kernel.tools.reachable("mcp:agent:juno")}
    assert _first_cells("agents.md", "What an agent sees") == reached


def test_benchmarks_are_those_there_are():
    names = importlib.import_module("benchmarks.__main__").NAMES
    assert _first_cells("benchmarks.md", "What each ratio means") == _names(names)


# ---------------------------------------------------------------------- how it is found out


def _first_cells(page: str, heading: str) -> set[str]:
    return {row[0] for row in pages.rows(DOCS / page)[heading]}


def _names(found: Iterable[str]) -> set[str]:
    return set(found)


def _complaint(words: list[str]) -> str:
    """What is wrong with a command, or nothing."""
    program, *arguments = words
    if program.startswith("scripts/"):
        return "" if (sources.ROOT / program).exists() else f"there is no {program}"
    if program.rpartition("/")[2] != "takeback":
        return ""
    command, rest = _find(arguments)
    if command is None or isinstance(command, click.Group):
        return f"takeback has no command {' '.join(arguments)}"
    try:
        command.make_context("takeback", list(rest))
    except click.ClickException as error:
        return f"{' '.join(words)}: {error.message}"
    return ""


def _unknown(words: list[str]) -> str:
    """What a command within a line names that isn't there; in a sentence, arguments may be missing."""
    if words[0].rpartition("/")[2] != "takeback":
        return ""
    # What comes behind `--` is no option of ours.
    ours = words[1 : words.index("--")] if "--" in words else words[1:]
    command, rest = _find(ours)
    if command is None:
        return f"there is no {' '.join(words)}"
    known = {"--help", "-h"} | {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    unknown = [word for word in rest if word.startswith("-") and word not in known]
    return f"{' '.join(words)}: no option {unknown[0]}" if unknown else ""


def _find(words: list[str]) -> tuple[click.Command | None, list[str]]:
    """The command that words name, and the words after its name."""
    command: click.Command | None = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command, words = command.get_command(click.Context(command), words[0]), words[1:]
    return command, words


def _options(*path: str) -> set[str]:
    command, _ = _find(list(path))
    assert command is not None
    return {one.opts[0] for one in command.params if isinstance(one, click.Option)} - {"--json", "--no-start"}


def _event_kinds() -> set[str]:
    found: list[Any] = []
    for path in sources.MODULES.rglob("*.py"):
        found += re.findall(r'kind: ClassVar\[str\] = "([\w.]+)"', path.read_text())
    return set(found)
