"""module.toml is read before any code, and every fault in it is named with its file and key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import TakebackError
from takeback.manifest import API, Manifest, is_module_name, parse_manifest, read_manifest

WHOLE = """
api = 1
name = "mail"
summary = "Reads and files letters."
needs = ["undo"]
after = ["agents", "audit"]
calls = ["undo.*", "agents.list"]
door = true
"""


def written(folder, text):
    (folder / "module.toml").write_text(text)
    return folder


def test_a_whole_manifest(tmp_path):
    assert read_manifest(written(tmp_path, WHOLE)) == Manifest(
        api=1,
        name="mail",
        summary="Reads and files letters.",
        needs=("undo",),
        after=("agents", "audit"),
        calls=("undo.*", "agents.list"),
        door=True,
    )


def test_what_is_left_out_is_empty(tmp_path):
    manifest = read_manifest(written(tmp_path, 'api = 1\nname = "mail"\nsummary = "Letters."\n'))
    assert (manifest.needs, manifest.after, manifest.calls, manifest.door) == ((), (), (), False)


@pytest.mark.parametrize(
    ("line", "says", "allowed"),
    [
        ("size = 3", "unknown key 'size'", "Allowed keys: api, name, summary, needs, after, calls, door."),
        ("api = 2", "asks for api 2 in its key 'api'", "speaks api 1"),
        ("api = 0", "0 as its key 'api'", "The only api so far is 1."),
        ("api = true", "True as its key 'api'", "The only api so far is 1."),
        ('api = "1"', "'1' as its key 'api'", "The only api so far is 1."),
        ('name = "Mail"', "'Mail' as its key 'name'", "1 to 63 of a-z"),
        ('name = "mail:x"', "'mail:x' as its key 'name'", "1 to 63 of a-z"),
        ('name = "mail\\n"', "as its key 'name'", "1 to 63 of a-z"),
        ('name = "máil"', "as its key 'name'", "1 to 63 of a-z"),
        ("name = 3", "3 as its key 'name'", "1 to 63 of a-z"),
        ('summary = " "', "no summary in its key 'summary'", "One line"),
        ('summary = "a\\nb"', "no summary in its key 'summary'", "One line"),
        ('needs = "undo"', "'undo' as its key 'needs'", "A list of names"),
        ('needs = ["un do"]', "'un do' in its key 'needs'", "A list of names"),
        ("needs = [1]", "1 in its key 'needs'", "A list of names"),
        ('needs = ["mail"]', "names itself in its key 'needs'", "other modules"),
        ('after = ["mail"]', "names itself in its key 'after'", "other modules"),
        ('after = ["*"]', "'*' in its key 'after'", "A list of names"),
        ('calls = ["undo"]', "'undo' in its key 'calls'", "'module.verb', 'module.*' or '*'"),
        ('calls = ["*.list"]', "'*.list' in its key 'calls'", "'module.verb', 'module.*' or '*'"),
        ('calls = ["un*.list"]', "'un*.list' in its key 'calls'", "'module.verb', 'module.*' or '*'"),
        ('door = "yes"', "'yes' as its key 'door'", "true or false"),
        ("door = 1", "1 as its key 'door'", "true or false"),
    ],
)
def test_a_fault_is_named_with_file_and_key_and_what_is_allowed(tmp_path, line, says, allowed):
    key = line.split(" =")[0]
    kept = [other for other in WHOLE.strip().splitlines() if not other.startswith(f"{key} =")]
    written(tmp_path, "\n".join([*kept, line]))
    with pytest.raises(TakebackError) as caught:
        read_manifest(tmp_path)
    assert caught.value.code == "module.manifest"
    assert caught.value.message.startswith(str(tmp_path / "module.toml"))
    assert says in caught.value.message
    assert allowed in caught.value.hint


@pytest.mark.parametrize("key", ["api", "name", "summary"])
def test_a_missing_key_is_named(tmp_path, key):
    kept = [line for line in WHOLE.strip().splitlines() if not line.startswith(f"{key} =")]
    with pytest.raises(TakebackError, match=f"lacks the key '{key}'"):
        read_manifest(written(tmp_path, "\n".join(kept)))


def test_a_newer_api_is_refused_for_its_number_not_for_its_unknown_keys(tmp_path):
    with pytest.raises(TakebackError, match="asks for api 9"):
        read_manifest(written(tmp_path, WHOLE.replace("api = 1", "api = 9\nparts = []")))


def test_no_file_no_toml_and_no_text_are_each_said(tmp_path):
    with pytest.raises(TakebackError, match=r"module\.toml can't be read") as caught:
        read_manifest(tmp_path)
    assert caught.value.code == "module.manifest"
    with pytest.raises(TakebackError, match=r"module\.toml is not valid TOML"):
        read_manifest(written(tmp_path, "api = "))
    (tmp_path / "module.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TakebackError, match=r"module\.toml is not valid TOML"):
        read_manifest(tmp_path)


def test_reading_a_manifest_runs_no_code_of_its_module(tmp_path):
    (tmp_path / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "module.py").write_text("raise SystemExit('imported')")
    assert read_manifest(written(tmp_path, WHOLE)).name == "mail"


@pytest.mark.parametrize(
    ("calls", "tool", "may"),
    [
        ((), "undo.list", False),
        (("undo.list",), "undo.list", True),
        (("undo.list",), "undo.run", False),
        (("undo.list",), "undo.list.more", False),
        (("undo.*",), "undo.run", True),
        (("undo.*",), "undoing.run", False),
        (("undo.*",), "undo.", False),
        (("undo.*",), "undo", False),
        (("*",), "files.write", True),
        (("*",), "files", False),
    ],
)
def test_may_call(calls, tool, may):
    assert Manifest(API, "mail", "Letters.", calls=calls).may_call(tool) is may


@given(st.text(max_size=70))
def test_a_name_is_a_module_name_only_when_plain(name):
    plain = "abcdefghijklmnopqrstuvwxyz0123456789"
    good = 0 < len(name) <= 63 and name[0] in plain and all(char in plain + "_-" for char in name)
    assert is_module_name(name) is good


@given(
    st.dictionaries(
        st.sampled_from(["api", "name", "summary", "needs", "after", "calls", "door", "other"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text() | st.integers())),
    )
)
def test_any_table_gives_a_manifest_or_the_one_error(table):
    try:
        made: object = parse_manifest(table, "module.toml")
    except TakebackError as exc:
        made = exc
    if isinstance(made, TakebackError):
        assert (made.code, bool(made.hint)) == ("module.manifest", True)
    else:
        assert isinstance(made, Manifest)
        assert is_module_name(made.name)
