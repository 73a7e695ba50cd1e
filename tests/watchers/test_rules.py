"""Rules and templates: what can be followed, and what is refused before any file is looked at."""

from datetime import date

import pytest

from takeback import ConflictError, RefusedError, UsageError
from takeback.home import Home
from takeback_acts.watchers.rules import read, require_end
from takeback_acts.watchers.settings import RuleSettings
from takeback_acts.watchers.template import Template

DAY = date(2026, 3, 7)


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("pdf/{name}", "pdf/a.b.pdf"),
        ("{stem}-{date}{suffix}", "a.b-2026-03-07.pdf"),
        ("{year}/{month}/{day}/{name}", "2026/03/07/a.b.pdf"),
        ("{{{stem}}}", "{a.b}"),
    ],
)
def test_a_template_is_filled_from_name_and_date(template, path):
    assert Template(template).fill("a.b.pdf", DAY) == path


def test_what_a_name_holds_is_no_template_itself():
    assert Template("x/{name}").fill("{date}.{0.__class__}", DAY) == "x/{date}.{0.__class__}"


@pytest.mark.parametrize(
    "template",
    ["/etc/{name}", "../{name}", "a/../../{name}", "a//{name}", "./{name}", "{name}/", "{stem}/..", "a\0b"],
)
def test_a_template_that_leads_outside_the_root_is_refused(template):
    with pytest.raises(UsageError, match="leads outside") as refused:
        Template(template)
    assert refused.value.code == "watchers.template"


@pytest.mark.parametrize(
    "template", ["{nome}", "{}", "{0}", "{name.__class__}", "{name!r}", "{name:>9}", "{name"]
)
def test_a_template_with_a_part_that_is_none_is_refused(template):
    with pytest.raises(UsageError) as refused:
        Template(template)
    assert refused.value.code == "watchers.template"
    assert "{stem}" in refused.value.hint


def test_a_name_of_dots_has_no_stem_that_leads_up():
    assert Template("{stem}/{name}").fill("...pdf", DAY) == "...pdf/...pdf"


def test_a_file_without_a_suffix_has_no_folder_named_by_it():
    with pytest.raises(RefusedError) as refused:
        Template("{suffix}/{name}").fill("README", DAY)
    assert refused.value.code == "watchers.target"


@pytest.fixture
def home(tmp_path):
    return Home.at(tmp_path / "home")


def _settings(tmp_path, **given):
    usual = {"name": "papers", "root": str(tmp_path), "pattern": "*.pdf", "action": "move", "target": "pdf/"}
    return RuleSettings(**(usual | given))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"root": "inbox"}, "watchers.rule"),
        ({"pattern": "in/*.pdf"}, "watchers.rule"),
        ({"action": "rename", "target": "pdf/{name}"}, "watchers.rule"),
        ({"target": "../{name}"}, "watchers.template"),
    ],
)
def test_a_rule_that_can_not_be_followed_is_off_and_the_others_go_on(tmp_path, home, given, code):
    rules, wrong = read([_settings(tmp_path, **given), _settings(tmp_path, name="good")], home)
    assert [rule.name for rule in rules] == ["good"]
    assert wrong["papers"].code == code


@pytest.mark.parametrize("inside", ["home", "home/data", "home/data/packs"])
def test_takebacks_own_home_is_no_root(tmp_path, home, inside):
    home.create()
    _, wrong = read([_settings(tmp_path, root=str(tmp_path / inside))], home)
    assert [error.code for error in wrong.values()] == (["watchers.home"] if inside != "home" else [])


def test_a_name_is_given_once(tmp_path, home):
    rules, wrong = read([_settings(tmp_path), _settings(tmp_path, pattern="*.txt")], home)
    assert [rule.matches("a.pdf") for rule in rules] == [True]
    assert wrong["papers"].code == "watchers.rule"


def test_a_pattern_sees_hidden_files_only_when_it_says_so(tmp_path, home):
    (every, hidden), _ = read(
        [_settings(tmp_path, name="a", pattern="*"), _settings(tmp_path, name="b", pattern=".*")], home
    )
    assert [every.matches("a.pdf"), every.matches(".a.pdf")] == [True, False]
    assert [hidden.matches("a.pdf"), hidden.matches(".a.pdf")] == [False, True]


def test_a_target_that_a_rule_would_take_again_is_refused(tmp_path, home):
    rules, _ = read([_settings(tmp_path)], home)
    require_end(rules, str(tmp_path / "pdf" / "a.pdf"))
    require_end(rules, str(tmp_path / "a.txt"))
    with pytest.raises(ConflictError) as refused:
        require_end(rules, str(tmp_path / "b.pdf"))
    assert refused.value.code == "watchers.loop"


def test_a_root_is_known_by_the_path_it_really_has(tmp_path, home):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (rule,), _ = read([_settings(tmp_path, root=str(tmp_path / "link"))], home)
    assert rule.root == str(tmp_path / "real")
