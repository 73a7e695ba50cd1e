"""What the documents show: blocks of code with what is noted before them, commands, and code within lines."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(r"(?:^<!-- (?P<note>.+?) -->\n)?^```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.M | re.S)
_INLINE = re.compile(r"`([^`\n]+)`")
_ENDS = frozenset({";", "&&", "||", "|", "(", ")", "&"})
_REDIRECTS = frozenset({">", ">>", "<", "<<", "<<<"})


class Block(NamedTuple):
    """A block of code: its language, the comment right before it, and its text."""

    kind: str
    note: str
    code: str


def blocks(page: Path, kind: str | None = None) -> list[Block]:
    """The page's blocks, of one language if it is given."""
    found = [Block(m["kind"], m["note"] or "", m["code"]) for m in _BLOCK.finditer(page.read_text())]
    return [block for block in found if kind in (None, block.kind)]


def files(page: Path) -> dict[str, str]:
    """The blocks that stand for files, by the path noted before each: `<!-- file: a/b.py -->`."""
    noted = [block for block in blocks(page) if block.note.startswith("file: ")]
    return {block.note.removeprefix("file: "): block.code for block in noted}


def inline(page: Path) -> list[str]:
    """The code within lines."""
    return _INLINE.findall(_BLOCK.sub("", page.read_text()))


def commands(script: str) -> Iterator[list[str]]:
    """The words of each command of a shell script; here-documents and redirections are left out."""
    lines = iter(script.replace("\\\n", " ").splitlines())
    for line in lines:
        words = _words(line)
        if "<<" in words:
            end = words[words.index("<<") + 1]
            while next(lines) != end:
                continue
        yield from _split(words)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _split(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    rest = iter([*words, ";"])
    for word in rest:
        if word in _ENDS:
            if command:
                yield command
            command = []
        elif word in _REDIRECTS:
            next(rest)
        else:
            command.append(word)
