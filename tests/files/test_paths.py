"""Names of files: resources, canonical paths, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import UsageError
from takeback_acts.files import paths

names = st.binary(min_size=1, max_size=40).filter(
    lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b"..")
)


@given(st.lists(names, min_size=1, max_size=5))
def test_every_path_of_bytes_has_one_resource_and_comes_back(parts):
    path = b"/" + b"/".join(parts)
    uri = paths.resource(path)
    assert uri.isascii()
    assert paths.parse(uri) == (path, False)
    assert paths.parse(paths.content(path)) == (path, True)
    assert paths.encode(paths.shown(path)) == path


def test_a_byte_that_is_no_text_is_percent_encoded():
    assert paths.resource(b"/a/b\xff c") == "files:/a/b%FF%20c"
    assert paths.shown(b"/a/b\xff") == "files:/a/b%FF"
    assert paths.shown("/a/ü".encode()) == "/a/ü"


@pytest.mark.parametrize("raw", [b"a/b", b"", b"/a\0b", b"/a/../b", b"/..", b"/" + b"x" * 5000])
def test_a_path_that_could_mean_something_else_is_refused(raw):
    with pytest.raises(UsageError) as error:
        paths.canonical(raw)
    assert error.value.code == "files.path"


@pytest.mark.parametrize("uri", ["files:a", "rows:/a", "/a", "files:", "files:/a/%2e%2e/b", "files:/a%00"])
def test_a_resource_that_is_none_of_files_is_refused(uri):
    with pytest.raises(UsageError):
        paths.parse(uri)


def test_doubled_slashes_and_dots_are_one_path():
    assert paths.canonical(b"//a/./b//") == b"/a/b"


def test_beneath_compares_parts_and_not_prefixes():
    assert paths.beneath(b"/root/a", b"/root")
    assert paths.beneath(b"/root", b"/root")
    assert paths.beneath(b"/a", b"/")
    assert not paths.beneath(b"/root-evil/a", b"/root")
