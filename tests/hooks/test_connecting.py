"""Connecting: an agent's own settings get our entries and keep everything else, byte for byte."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import RefusedError, UsageError
from takeback_doors.hooks.connecting.agents import WIRINGS
from takeback_doors.hooks.connecting.connector import Connector
from takeback_doors.hooks.connecting.editing import with_item, without_items
from takeback_doors.hooks.connecting.jsonc import MalformedError, parse
from tests.hooks.desk import AGENTS, GATE
from tests.kernel.unprivileged import readonly_folder

_GATE = [sys.executable, "-I", "-S", str(GATE), "x", "/run/gate.sock", "/data/spool"]
_WITH_COMMENTS = """{
    // what I like
    "theme": "dark", /* and
    nothing else */
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh"}]}, // mine
        ],
        "BeforeTool": [],
    },
    "last": [1, 2, 3,],
}
"""

every_agent = pytest.mark.parametrize("agent", AGENTS)
every_wired = pytest.mark.parametrize("agent", [name for name in AGENTS if WIRINGS[name].events])


def _connector(agent, folder):
    return Connector(agent, str(folder), {}, _GATE)


def _path(agent, folder):
    return WIRINGS[agent].project(folder)


@every_agent
def test_what_was_not_there_is_made_and_goes_again(tmp_path, agent):
    done = _connector(agent, tmp_path).connect(dry_run=False)
    assert done.changed
    assert done.path == str(_path(agent, tmp_path))
    assert str(GATE) in _path(agent, tmp_path).read_text()
    assert _connector(agent, tmp_path).disconnect(dry_run=False).changed
    assert list(tmp_path.iterdir()) == []


@every_agent
def test_twice_is_once(tmp_path, agent):
    _connector(agent, tmp_path).connect(dry_run=False)
    text = _path(agent, tmp_path).read_text()
    again = _connector(agent, tmp_path).connect(dry_run=False)
    assert not again.changed
    assert _path(agent, tmp_path).read_text() == text


@every_agent
def test_a_dry_run_changes_nothing(tmp_path, agent):
    assert _connector(agent, tmp_path).connect(dry_run=True).changed
    assert list(tmp_path.iterdir()) == []


@every_wired
def test_comments_and_others_entries_stay_and_all_comes_back(tmp_path, agent):
    path = _path(agent, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(_WITH_COMMENTS)
    path.chmod(0o640)
    done = _connector(agent, tmp_path).connect(dry_run=False)
    text = path.read_text()
    for words in ("// what I like", "/* and\n    nothing else */", "// mine", "mine.sh", "[1, 2, 3,]"):
        assert words in text
    assert path.stat().st_mode & 0o777 == 0o640
    hooks = parse(text).value["hooks"]
    assert all(any("gate.py" in json.dumps(item) for item in hooks[event]) for event in done.events)
    assert Path(done.backup).read_text() == _WITH_COMMENTS
    _connector(agent, tmp_path).disconnect(dry_run=False)
    assert path.read_text() == _WITH_COMMENTS
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@every_wired
def test_what_was_changed_since_stays_when_we_go(tmp_path, agent):
    path = _path(agent, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text('{\n  "theme": "dark"\n}\n')
    _connector(agent, tmp_path).connect(dry_run=False)
    path.write_text(path.read_text().replace('"dark"', '"light"'))
    _connector(agent, tmp_path).disconnect(dry_run=False)
    assert path.read_text() == '{\n  "theme": "light"\n}\n'


@every_wired
def test_an_entry_from_elsewhere_is_brought_up_to_date(tmp_path, agent):
    _connector(agent, tmp_path).connect(dry_run=False)
    path = _path(agent, tmp_path)
    path.write_text(path.read_text().replace(sys.executable, "/gone/python"))
    assert _connector(agent, tmp_path).connect(dry_run=False).changed
    text = path.read_text()
    assert "/gone/python" not in text
    assert text.count("gate.py") == len(WIRINGS[agent].events)


@every_wired
@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', "nonsense", '{"a": 1} x', "\0", '{"a" 1}'])
def test_what_is_not_settings_is_refused_and_left(tmp_path, agent, text):
    path = _path(agent, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(RefusedError) as refused:
        _connector(agent, tmp_path).connect(dry_run=False)
    assert refused.value.code in ("connect.not_json", "connect.shape")
    assert refused.value.hint
    assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = _path("claude", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(RefusedError, match="no text"):
        _connector("claude", tmp_path).connect(dry_run=False)


def test_a_folder_in_its_place_is_refused(tmp_path):
    _path("claude", tmp_path).mkdir(parents=True)
    with pytest.raises(RefusedError, match="can't be changed"):
        _connector("claude", tmp_path).connect(dry_run=False)


def test_a_strangers_plugin_is_left(tmp_path):
    path = _path("opencode", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("// somebody's own\n")
    with pytest.raises(RefusedError, match="not takeback's"):
        _connector("opencode", tmp_path).connect(dry_run=False)
    assert not _connector("opencode", tmp_path).disconnect(dry_run=False).changed


def test_a_link_stays_a_link(tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}\n")
    path = _path("claude", tmp_path)
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    _connector("claude", tmp_path).connect(dry_run=False)
    assert path.is_symlink()
    assert "gate.py" in real.read_text()


def test_an_agent_nobody_knows_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError) as refused:
        _connector("emacs", tmp_path)
    assert "claude" in refused.value.hint


def test_the_command_is_one_line_that_a_shell_runs(tmp_path):
    odd = tmp_path / "it's a folder"
    odd.mkdir()
    Connector("claude", str(odd), {}, [*_GATE[:-1], str(odd / "spool")]).connect(dry_run=False)
    entry = parse(_path("claude", odd).read_text()).value["hooks"]["PreToolUse"][0]
    command = entry["hooks"][0]["command"]
    assert shlex.split(command)[-1] == str(odd / "spool")
    ran = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, env={}, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_settings_of_the_person_are_found_by_the_environment(tmp_path):
    done = Connector("claude", None, {"CLAUDE_CONFIG_DIR": str(tmp_path / "c")}, _GATE).connect(dry_run=True)
    assert done.path == str(tmp_path / "c" / "settings.json")
    done = Connector("codex", None, {"HOME": str(tmp_path)}, _GATE).connect(dry_run=True)
    assert done.path == str(tmp_path / ".codex" / "hooks.json")


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), _values, max_size=4), st.sampled_from([None, 2, 4, "\t"]))
def test_what_is_put_in_comes_out_and_the_rest_is_the_same(settings, indent):
    settings.pop("hooks", None)
    text = json.dumps(settings, indent=indent)
    more = with_item(with_item(text, ("hooks", "A"), {"x": 1}), ("hooks", "A"), {"x": 2})
    assert parse(more).value == {**settings, "hooks": {"A": [{"x": 1}, {"x": 2}]}}
    assert without_items(more, ("hooks",), lambda item: True) == text or settings == {}
    assert parse(without_items(more, ("hooks",), lambda item: True)).value == settings


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        value = parse(text).value
    except MalformedError:
        with pytest.raises(ValueError):
            _strict(text)
    else:
        assert json.dumps(value) is not None


def _strict(text):
    """As JSON is written: without the numbers that only Python knows."""
    return json.loads(text, parse_constant=lambda name: int(name))


@pytest.mark.parametrize("files", [(), ("settings.json",)])
def test_what_is_not_ours_to_write_is_refused(files):
    with readonly_folder(*files) as folder:
        with pytest.raises(RefusedError) as refused:
            Connector("claude", None, {"CLAUDE_CONFIG_DIR": str(folder)}, _GATE).connect(dry_run=False)
        assert refused.value.code == "connect.not_ours"
