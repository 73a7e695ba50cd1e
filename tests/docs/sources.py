"""What the sources say, for the tests that hold the documents to it."""

import ast
import importlib
import json
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from takeback import errors

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "modules"

_KINDS = {
    cls.__name__: cls.kind
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, errors.TakebackError)
}


def project() -> dict[str, Any]:
    """pyproject.toml, parsed."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def entry_points() -> dict[str, str]:
    """Name of each built-in module -> `package.module:Class`."""
    found: dict[str, str] = project()["project"]["entry-points"]["takeback.modules"]
    return found


def module_class(entry: str) -> Any:
    """The class an entry point names."""
    module, _, name = entry.partition(":")
    return getattr(importlib.import_module(module), name)


def settings() -> dict[str, dict[str, str]]:
    """Section of takeback.toml, as `[undo]` -> its keys, each with what it is when not set, as TOML."""
    modules = {f"[{name}]": module_class(entry).Settings for name, entry in entry_points().items()}
    found = {section: _defaults(model) for section, model in modules.items() if model is not None}
    return found | {"[kernel]": _defaults(_kernel_settings())}


def _defaults(model: type[BaseModel]) -> dict[str, str]:
    # TOML and JSON write every value alike that a setting can have.
    fields = model.model_fields.items()
    return {
        key: json.dumps(field.get_default(call_default_factory=True), default=str) for key, field in fields
    }


def _kernel_settings() -> type[BaseModel]:
    found: type[BaseModel] = importlib.import_module("takeback.kernel_settings").KernelSettings
    return found


def error_codes() -> tuple[dict[str, set[str]], list[str]]:
    """Each code that is raised -> the kinds it is raised with; and the places whose code is no literal."""
    found: dict[str, set[str]] = defaultdict(set)
    hidden: list[str] = []
    for path in sorted([*(ROOT / "kernel").rglob("*.py"), *MODULES.rglob("*.py")]):
        tree = ast.parse(path.read_text())
        makers = _makers(tree)
        raising = makers | _classes(tree)
        for call in _calls(tree):
            kinds = raising.get(_called(call), set())
            literals = _literals(call.args[0]) if kinds and call.args else []
            for code in literals:
                found[code] |= kinds
            if kinds and not literals and not _within(makers, tree, call):
                hidden.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    return dict(found), hidden


def _classes(tree: ast.Module) -> dict[str, set[str]]:
    """The names of error classes in a file -> kinds: their own, and variables that hold one of several."""
    found = {name: {kind} for name, kind in _KINDS.items()}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.IfExp(body=ast.Name(id=one), orelse=ast.Name(id=other))
            ) if {one, other} <= _KINDS.keys():
                found[name] = {_KINDS[one], _KINDS[other]}
    return found


def _makers(tree: ast.Module) -> dict[str, set[str]]:
    """The functions of a file that make an error of the `code` they are given first -> its kind."""
    return {
        function.name: {_KINDS[_called(call)]}
        for function in _functions(tree)
        if function.args.args and function.args.args[0].arg == "code"
        for call in _calls(function)
        if _called(call) in _KINDS and call.args and ast.unparse(call.args[0]) == "code"
    }


def _within(makers: dict[str, set[str]], tree: ast.Module, call: ast.Call) -> bool:
    return any(call in _calls(function) for function in _functions(tree) if function.name in makers)


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _called(call: ast.Call) -> str:
    # By its bare name only: click has a UsageError as well, which has no code.
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _literals(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(code)):
            return [code]
        case ast.IfExp(body=one, orelse=other):
            return [*_literals(one), *_literals(other)]
    return []


def command_paths() -> set[str]:
    """Every command a person can type, as `takeback agents add`; hidden ones aside."""
    cli = importlib.import_module("takeback_doors.cli.main").cli
    return _beneath(cli, "takeback", click.Context(cli, info_name="takeback"))


def _beneath(group: click.Group, path: str, ctx: click.Context) -> set[str]:
    found: set[str] = set()
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, f"{path} lists {name} and does not have it"
        if command.hidden:
            continue
        here = f"{path} {name}"
        found.add(here)
        if isinstance(command, click.Group):
            found |= _beneath(command, here, click.Context(command, parent=ctx, info_name=name))
    return found
