"""Modules are found by who installed them; one broken package stops nobody and says why."""

import importlib
import itertools
import sys
import textwrap

import pytest

from takeback.discovery import find, settle
from takeback.errors import TakebackError
from takeback.manifest import Manifest
from takeback.module import Module
from takeback.sources import Source

NUMBERS = itertools.count()
GOOD = """
    from takeback import Module

    class Made(Module):
        pass
"""
PLUGIN = """
    from takeback.hookspecs import hookimpl
    from takeback.module import Module
    from takeback.manifest import Manifest

    class One(Module):
        manifest = Manifest(1, "one", "The first.")

    @hookimpl
    def register_modules(register):
        register(One)
        register("{package}.two.module:Two")
"""


class Shelf:
    """Installs packages into a folder on Python's path, each with metadata of its own."""

    def __init__(self, folder):
        self.folder = folder

    def package(self, code, *, name=None, manifest=True, toml=""):
        """A package that nothing has imported yet; answers its dotted name."""
        package = f"shelf_{next(NUMBERS)}"
        home = self.folder / package
        home.mkdir(parents=True)
        (home / "__init__.py").write_text("")
        (home / "module.py").write_text(textwrap.dedent(code))
        if manifest:
            (home / "module.toml").write_text(toml or f'api = 1\nname = "{name}"\nsummary = "For a test."\n')
        return package

    def entry(self, distribution, name, value):
        """A distribution that offers the value under the name."""
        info = self.folder / f"{distribution.replace('-', '_')}-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
        entries = info / "entry_points.txt"
        before = entries.read_text() if entries.exists() else "[takeback.modules]\n"
        entries.write_text(f"{before}{name} = {value}\n")

    def install(self, distribution, name, code=GOOD, **how):
        package = self.package(code, name=how.pop("called", name), **how)
        self.entry(distribution, name, f"{package}.module:Made")
        return package


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    folder = tmp_path / "shelf"
    folder.mkdir()
    # Alone on the path of metadata: what this machine has installed is no part of a test.
    monkeypatch.setattr(
        sys, "path", [str(folder), *(path for path in sys.path if "site-packages" not in path)]
    )
    importlib.invalidate_caches()
    before = set(sys.modules)
    yield Shelf(folder)
    for name in set(sys.modules) - before:
        if name.startswith(("shelf_", "takeback_folder_")):
            del sys.modules[name]


def by_name(found):
    return {source.name: source for source in found.sources}


def refusal(source):
    with pytest.raises(TakebackError) as caught:
        source.load()
    return caught.value


def test_installed_is_not_enabled(shelf):
    shelf.install("acme-mail", "mail")
    found = by_name(find())["mail"]
    assert (found.enabled, found.builtin, found.distribution, found.broken) == (False, False, "acme-mail", "")
    assert by_name(find(enabled=["mail"]))["mail"].enabled
    assert not by_name(find(enabled=["mail"], disabled=["mail"]))["mail"].enabled


def test_discovery_imports_nothing_and_knows_the_manifest(shelf):
    package = shelf.install("acme", "mail", "raise SystemExit('imported')")
    source = by_name(find(enabled=["mail"]))["mail"]
    assert source.manifest == Manifest(1, "mail", "For a test.")
    assert not {name for name in sys.modules if name.startswith(package)}


def test_load_answers_the_class(shelf):
    package = shelf.install("acme", "mail")
    made = by_name(find())["mail"].load()
    assert issubclass(made, Module)
    assert made.__module__ == f"{package}.module"


def test_a_parent_package_is_not_imported_to_find_the_manifest(shelf):
    package = shelf.package("", manifest=False)
    (shelf.folder / package / "__init__.py").write_text("raise SystemExit('imported')")
    inner = shelf.folder / package / "inner"
    inner.mkdir()
    (inner / "module.toml").write_text('api = 1\nname = "deep"\nsummary = "Deep down."\n')
    shelf.entry("acme", "deep", f"{package}.inner.module:Made")
    source = by_name(find())["deep"]
    assert source.manifest == Manifest(1, "deep", "Deep down.")
    assert "SystemExit: imported" in refusal(source).message


def test_only_the_distribution_takeback_with_its_own_packages_is_built_in(shelf):
    shelf.entry("takeback", "undo", "takeback_core.undo.module:UndoModule")
    shelf.install("takeback", "odd")
    shelf.entry("evil", "agents", "takeback_core.agents.module:AgentsModule")
    found = by_name(find())
    assert (found["undo"].builtin, found["undo"].enabled) == (True, True)
    assert (found["odd"].builtin, found["odd"].enabled) == (False, False)
    assert (found["agents"].builtin, found["agents"].enabled) == (False, False)
    assert not by_name(find(disabled=["undo"]))["undo"].enabled


def test_what_a_module_says_of_itself_does_not_make_it_built_in(shelf):
    shelf.install("acme", "mail", GOOD + "    builtin = True\n    distribution = 'takeback'\n")
    assert not by_name(find())["mail"].builtin
    shelf.install("acme-b", "post", toml='api = 1\nname = "post"\nsummary = "x"\nbuiltin = true\n')
    assert "unknown key 'builtin'" in by_name(find())["post"].broken


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("raise ImportError('no such lib')", "ImportError: no such lib"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("import asyncio\nraise asyncio.CancelledError('me')", "CancelledError: me"),
        (
            "raise BaseExceptionGroup('all', [SystemExit(1), ValueError('two')])",
            "SystemExit: 1; ValueError: two",
        ),
        ("Other = 1", "has no attribute 'Made'"),
    ],
)
def test_a_package_that_fails_to_import_says_why_and_stops_nobody(shelf, code, says):
    shelf.install("acme", "bad", code)
    shelf.install("fine", "good")
    found = by_name(find(enabled=["bad", "good"]))
    error = refusal(found["bad"])
    assert error.code == "module.import"
    assert says in error.message
    assert "bad" in error.message
    assert issubclass(found["good"].load(), Module)


@pytest.mark.parametrize("code", ["class Made: pass", "Made = 3", "def Made(host): pass"])
def test_what_is_no_module_class_is_refused(shelf, code):
    shelf.install("acme", "bad", code)
    error = refusal(by_name(find())["bad"])
    assert error.code == "module.broken"
    assert "not a Module class" in error.message


def test_a_bad_manifest_is_a_reason_and_stops_nobody(shelf):
    shelf.install("acme", "bad", toml="api = 1\n")
    shelf.install("acme", "none", manifest=False)
    shelf.install("acme", "other", called="another")
    shelf.entry("acme", "gone", "no_such_package.module:Made")
    shelf.install("fine", "good")
    found = by_name(find())
    assert "lacks the key 'name'" in found["bad"].broken
    assert "module.toml can't be read" in found["none"].broken
    assert "installed as 'other', but its module.toml says 'another'" in found["other"].broken
    assert "No module named 'no_such_package'" in found["gone"].broken
    assert refusal(found["bad"]).code == "module.manifest"
    assert found["good"].broken == ""


def test_a_module_in_a_single_file_has_no_manifest_of_its_own(shelf):
    (shelf.folder / "shelf_single.py").write_text(textwrap.dedent(GOOD))
    (shelf.folder / "module.toml").write_text('api = 1\nname = "single"\nsummary = "x"\n')
    shelf.entry("acme", "single", "shelf_single:Made")
    assert "single file" in by_name(find())["single"].broken


def test_a_built_in_module_keeps_its_own_name(shelf):
    shelf.entry("takeback", "undo", "takeback_core.undo.module:UndoModule")
    shelf.install("evil", "undo")
    found = find(enabled=["undo"])
    assert by_name(found)["undo"].distribution == "takeback"
    (problem,) = found.problems
    assert (problem.name, problem.distribution) == ("undo", "evil")
    assert "of takeback" in problem.reason
    assert "of evil" in problem.reason


def test_of_two_added_modules_with_one_name_neither_loads(shelf):
    shelf.install("acme", "mail")
    shelf.install("zeta", "mail")
    shelf.install("fine", "good")
    found = by_name(find(enabled=["mail", "good"]))
    assert "of acme" in found["mail"].broken
    assert "of zeta" in found["mail"].broken
    assert found["mail"].enabled
    assert refusal(found["mail"]).code == "module.name"
    assert found["good"].broken == ""


def test_nobody_takes_the_name_of_the_kernel(shelf):
    shelf.install("evil", "kernel")
    found = find(enabled=["kernel"])
    assert by_name(found) == {}
    assert "belongs to the kernel" in found.problems[0].reason


def test_a_name_in_the_settings_that_nobody_offers_is_said(shelf):
    shelf.install("acme", "mail")
    found = find(enabled=["mail", "male"], disabled=["gone"])
    assert [problem.name for problem in found.problems] == ["gone", "male"]


def test_damaged_metadata_is_a_problem_of_its_own(shelf):
    shelf.install("fine", "good")
    info = shelf.folder / "torn-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torn\nVersion: 1\n")
    (info / "entry_points.txt").write_bytes(b"[takeback.modules]\nx\xff = y\n")
    found = find()
    assert set(by_name(found)) == {"good"}
    assert "torn-1.dist-info can't be read" in found.problems[0].reason


def install_plugin(shelf, code, distribution="pack", name="pack"):
    package = shelf.package("", manifest=False)
    (shelf.folder / package / "__init__.py").write_text(textwrap.dedent(code).replace("{package}", package))
    two = shelf.folder / package / "two"
    two.mkdir()
    (two / "__init__.py").write_text("")
    (two / "module.py").write_text("from takeback import Module\nclass Two(Module): pass\n")
    (two / "module.toml").write_text('api = 1\nname = "two"\nsummary = "The second."\n')
    shelf.entry(distribution, name, package)
    return package


def test_a_package_offers_several_modules_by_hook(shelf):
    package = install_plugin(shelf, PLUGIN)
    found = find(enabled=["pack", "one"])
    assert found.problems == ()
    sources = by_name(found)
    assert {name: source.enabled for name, source in sources.items()} == {"one": True, "two": False}
    assert not any(source.builtin for source in sources.values())
    assert {source.distribution for source in sources.values()} == {"pack"}
    assert f"{package}.two.module" not in sys.modules
    assert sources["two"].load().__name__ == "Two"


def test_a_package_that_is_not_enabled_is_not_imported(shelf):
    package = install_plugin(shelf, PLUGIN)
    source = by_name(find(enabled=["one"]))["pack"]
    assert not source.enabled
    assert package not in sys.modules
    assert refusal(source).code == "module.package"


def test_a_package_offers_no_module_of_a_name_that_is_taken(shelf):
    shelf.entry("takeback", "undo", "takeback_core.undo.module:UndoModule")
    install_plugin(shelf, PLUGIN.replace('"one"', '"undo"'))
    found = find(enabled=["pack", "undo", "two"])
    assert by_name(found)["undo"].builtin
    assert "may not have it" in found.problems[0].reason


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise SystemExit(4)", "SystemExit: 4"),
        (PLUGIN.replace("(register):", "(register, nope):"), "nope"),
        (PLUGIN.replace("def register_modules", "def register_module"), "unknown hook"),
        (PLUGIN.replace("def register", "async def register"), "must be a plain function"),
        (PLUGIN.replace("register(One)", "raise RuntimeError('boom')"), "RuntimeError: boom"),
        (PLUGIN.replace("register(One)", "register(3)"), "offers int as a module"),
    ],
)
def test_a_package_with_a_bad_hook_is_reported_and_stops_nobody(shelf, code, says):
    install_plugin(shelf, code, "apack", "apack")
    install_plugin(shelf, PLUGIN, "pack", "pack")
    found = by_name(find(enabled=["apack", "pack", "one", "two"]))
    assert says in found["apack"].broken
    assert set(found) == {"apack", "one", "two"}
    assert found["one"].broken == found["two"].broken == ""


class Plain(Module):
    manifest = Manifest(1, "plain", "Given by a test.", needs=("undo",))


class Wrong(Module):
    manifest = Manifest(1, "Wrong Name", "Given by a test.")


def test_a_class_is_a_source_with_the_manifest_it_carries():
    source = Source.of(Plain)
    assert (source.name, source.builtin, source.enabled) == ("plain", True, True)
    assert source.manifest is Plain.manifest
    assert source.load() is Plain
    assert not Source.of(Plain, builtin=False).builtin


def test_a_class_without_a_manifest_has_the_module_toml_beside_its_file(shelf):
    package = shelf.package(GOOD, name="beside")
    made = importlib.import_module(f"{package}.module").Made
    assert Source.of(made).manifest == Manifest(1, "beside", "For a test.")


def test_a_class_with_a_bad_manifest_or_none_is_broken(shelf):
    assert "'Wrong Name' as its key 'name'" in Source.of(Wrong).broken
    package = shelf.package(GOOD, manifest=False)
    made = importlib.import_module(f"{package}.module").Made
    assert "module.toml can't be read" in Source.of(made).broken


def test_a_folder_is_a_source_imported_as_what_it_is(shelf):
    package = shelf.package(GOOD, name="beside")
    source = Source.at(shelf.folder / package)
    assert source.name == "beside"
    assert source.load().__module__ == f"{package}.module"


def test_a_folder_off_the_path_is_a_package_of_its_own(tmp_path, shelf):
    folder = tmp_path / "my modules" / "notes"
    folder.mkdir(parents=True)
    (folder / "module.toml").write_text('api = 1\nname = "my-notes"\nsummary = "Mine."\n')
    (folder / "models.py").write_text("LIMIT = 3\n")
    (folder / "module.py").write_text(
        "from takeback import Module\nfrom .models import LIMIT\nclass Notes(Module):\n    limit = LIMIT\n"
    )
    made = Source.at(folder, builtin=False).load()
    assert made.limit == 3  # type: ignore[attr-defined]
    assert Source.at(folder).load() is made


@pytest.mark.parametrize(
    ("code", "number"), [("", 0), (GOOD + "    class Other(Module):\n        pass\n", 2)]
)
def test_a_folder_must_hold_one_module_class(shelf, code, number):
    package = shelf.package(code, name="beside")
    error = refusal(Source.at(shelf.folder / package))
    assert error.code == "module.broken"
    assert f"defines {number} Module classes" in error.message


def test_a_folder_whose_package_fails_can_be_tried_again(tmp_path, shelf):
    folder = tmp_path / "lone"
    folder.mkdir()
    (folder / "module.toml").write_text('api = 1\nname = "lone"\nsummary = "Mine."\n')
    (folder / "module.py").write_text(textwrap.dedent(GOOD))
    (folder / "__init__.py").write_text("raise RuntimeError('not yet')")
    source = Source.at(folder)
    assert "RuntimeError: not yet" in refusal(source).message
    (folder / "__init__.py").write_text("")
    assert issubclass(source.load(), Module)


def test_sources_given_by_hand_follow_the_same_rule_of_names():
    class Rival(Module):
        manifest = Plain.manifest

    found = settle([Source.of(Plain), Source.of(Rival, builtin=False, distribution="evil")])
    assert found.sources[0].load() is Plain
    assert "of evil" in found.problems[0].reason
    assert "claimed by" in settle([Source.of(Plain), Source.of(Rival)]).sources[0].broken
