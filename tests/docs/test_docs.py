"""The documents say what the sources do: no more, no less."""

from pathlib import Path

import pytest

from tests.docs import pages, sources

DOCS = sources.ROOT / "docs"
PAGES = sorted([*sources.ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def test_every_error_gives_its_code_as_a_literal():
    _, hidden = sources.error_codes()
    assert not hidden, f"a code that is no literal can't be looked up: {hidden}"


def test_errors_page_has_each_code_with_its_kind():
    raised, _ = sources.error_codes()
    written = {row[0]: row[1] for table in pages.rows(DOCS / "errors.md").values() for row in table}
    assert written == {code: ", ".join(sorted(kinds)) for code, kinds in raised.items()}


def test_errors_page_names_a_code_once_under_its_family():
    found = [(family, row[0]) for family, table in pages.rows(DOCS / "errors.md").items() for row in table]
    assert [code for family, code in found if code.partition(".")[0] != family] == []
    assert len(found) == len({code for _, code in found})


def test_settings_page_has_each_setting_and_its_default():
    written = {
        section: {row[0]: row[1] for row in table}
        for section, table in pages.rows(DOCS / "settings.md").items()
        if section.startswith("[")
    }
    assert written == sources.settings()


def test_cli_page_has_a_heading_for_each_command():
    written = {heading for heading in pages.headings(DOCS / "cli.md") if heading.startswith("takeback ")}
    assert written == sources.command_paths()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(sources.ROOT)))
def test_links_within_the_project_lead_somewhere(page: Path):
    dead = [link for link in pages.links(page) if not _leads_somewhere(page, link)]
    assert not dead


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(sources.ROOT):
        return False
    return not anchor or anchor in pages.anchors(target)


def test_every_page_can_be_reached_from_the_index():
    index = DOCS / "index.md"
    listed = {(DOCS / link.partition("#")[0]).resolve() for link in pages.links(index)}
    assert {page for page in DOCS.rglob("*.md") if page != index} - listed == set()
