"""What the documents say: headings, tables and links of a Markdown page."""

import re
from pathlib import Path

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")


def text(page: Path) -> str:
    """The page without its blocks of code, where `#` and brackets mean something else."""
    return _FENCE.sub("", page.read_text())


def headings(page: Path) -> list[str]:
    """The headings, without their marks and backticks."""
    return [found.replace("`", "") for found in _HEADING.findall(text(page))]


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`."""
    return {_anchor(heading) for heading in headings(page)}


def links(page: Path) -> list[str]:
    """Where the page's links go that stay within the project."""
    return [to for to in _LINK.findall(text(page)) if not re.match(r"[a-z][a-z0-9+.-]*:", to)]


def rows(page: Path) -> dict[str, list[list[str]]]:
    """Heading -> the table rows beneath it, as cells without backticks; heads of tables are left out."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in text(page).splitlines():
        if match := _HEADING.match(line):
            heading = match[1].replace("`", "")
        elif line.startswith("| `"):
            cells = [cell.strip().strip("`") for cell in line.strip("| ").split(" | ")]
            found.setdefault(heading, []).append(cells)
    return found


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")
