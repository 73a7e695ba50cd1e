"""Settings: the person's file, the environment over it, and what is wrong with either."""

import pytest
from pydantic import BaseModel, ConfigDict, Field

from takeback.errors import UsageError
from takeback.home import Home
from takeback.settings import load_settings, section


class Inner(BaseModel):
    off: bool = False


class Undo(BaseModel):
    retention_days: int = Field(default=30, ge=1)
    label: str = ""
    capture: Inner = Inner()


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.fixture
def home(tmp_path):
    made = Home.at(tmp_path / "h")
    made.create()
    return made


def _undo(home, environ, text=None):
    if text is not None:
        home.settings.write_text(text, encoding="utf-8")
    return section(load_settings(home, environ), "undo", Undo)


def test_no_file_means_the_defaults(home):
    assert load_settings(home, {}) == {}
    assert _undo(home, {}) == Undo()


def test_the_file_is_read_by_section(home):
    found = _undo(home, {}, '[undo]\nretention_days = 7\n[undo.capture]\noff = true\n[files]\nx = "é"\n')
    assert found == Undo(retention_days=7, capture=Inner(off=True))
    assert load_settings(home, {})["files"] == {"x": "é"}


def test_a_variable_overrides_the_file(home):
    environ = {
        "TAKEBACK_UNDO__RETENTION_DAYS": "9",
        "TAKEBACK_UNDO__LABEL": "two words",
        "TAKEBACK_UNDO__CAPTURE__OFF": "true",
    }
    found = _undo(home, environ, "[undo]\nretention_days = 7\n")
    assert found == Undo(retention_days=9, label="two words", capture=Inner(off=True))


@pytest.mark.parametrize("text", ['1\nother = "x"', "", "[", "a = b", '"open', "nan-ish"])
def test_a_value_that_is_no_toml_is_text(home, text):
    assert _undo(home, {"TAKEBACK_UNDO__LABEL": text}).label == text


def test_other_variables_are_no_settings(home):
    environ = {"TAKEBACK_HOME": "/x", "TAKEBACK_TOKEN": "t", "MY_UNDO__RETENTION_DAYS": "9", "PATH": ""}
    assert load_settings(home, environ) == {}


@pytest.mark.parametrize("name", ["TAKEBACK___X", "TAKEBACK_UNDO__", "TAKEBACK__"])
def test_a_variable_that_names_no_setting_is_refused(home, name):
    with pytest.raises(UsageError) as refused:
        load_settings(home, {name: "1"})
    assert refused.value.code == "settings.malformed"
    assert name in refused.value.message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"[undo]\nretention_days = \n", 2),
        (b"[undo]\nx = 1\n[undo]\n", 3),
        (b"[undo]\nx = [1,\n2", 3),
        (b"[undo]\nx = '\xff'\n", 2),
        (b"\xff", 1),
    ],
)
def test_a_file_that_is_no_toml_is_named_with_its_line(home, content, line):
    home.settings.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        load_settings(home, {})
    assert refused.value.code == "settings.malformed"
    assert refused.value.data == {"file": str(home.settings), "line": line}
    assert str(home.settings) in refused.value.message
    assert home.settings.read_bytes() == content


def test_a_file_that_cannot_be_read_is_named(home):
    home.settings.mkdir()
    with pytest.raises(UsageError) as refused:
        load_settings(home, {})
    assert refused.value.code == "settings.unreadable"
    assert str(home.settings) in refused.value.message


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("[undo]\nretention_days = 0", "undo.retention_days", "greater than or equal to 1"),
        ("[undo]\nretention_days = 'secret'", "undo.retention_days", "integer"),
        ("[undo]\nretension_days = 1", "undo.retension_days", "capture, label, retention_days"),
        ("[undo.capture]\nsecret = 1", "undo.capture.secret", "Known here: off"),
        ("undo = 'secret'", "undo", "dictionary"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_allowed(home, text, key, hint):
    with pytest.raises(UsageError) as refused:
        _undo(home, {}, text)
    error = refused.value
    assert error.code == "settings.invalid"
    assert key in error.message
    assert str(home.settings) in error.message
    assert hint in error.hint
    assert "'secret'" not in error.message + error.hint
    assert error.data == {"key": key, "where": str(home.settings)}


def test_a_wrong_variable_is_named_instead_of_the_file(home):
    with pytest.raises(UsageError) as refused:
        _undo(home, {"TAKEBACK_UNDO__RETENTION_DAYS": "soon"})
    assert "TAKEBACK_UNDO__RETENTION_DAYS" in refused.value.message
    assert str(home.settings) not in refused.value.message


def test_a_variable_below_what_is_no_table_is_refused(home):
    home.settings.write_text("undo = 3")
    with pytest.raises(UsageError) as refused:
        load_settings(home, {"TAKEBACK_UNDO__RETENTION_DAYS": "1"})
    assert refused.value.code == "settings.invalid"
    assert "TAKEBACK_UNDO__RETENTION_DAYS" in refused.value.hint


def test_a_model_cannot_opt_out_of_refusing_unknown_keys():
    with pytest.raises(UsageError):
        section({"loose": {"x": 1}}, "loose", Loose)


def test_sections_given_by_a_program_have_no_file_to_name():
    with pytest.raises(UsageError) as refused:
        section({"undo": {"retention_days": 0}}, "undo", Undo)
    assert "undo.retention_days in the settings given" in refused.value.message
