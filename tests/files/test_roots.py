"""Which paths a caller may mean."""

import pytest

from takeback.context import Scope
from takeback.errors import RefusedError, UsageError
from takeback_acts.files import roots


def test_a_relative_path_is_relative_to_the_only_root():
    assert roots.resolve(Scope(roots=("/r",)), "a/b") == b"/r/a/b"
    assert roots.resolve(Scope(roots=("/r",)), ".") == b"/r"


@pytest.mark.parametrize("given", [("/r", "/s"), ()])
def test_a_relative_path_with_no_or_several_roots_is_refused(given):
    with pytest.raises(UsageError) as error:
        roots.resolve(Scope(roots=given), "a")
    assert error.value.code == "files.relative"


@pytest.mark.parametrize("path", ["/etc/passwd", "/r-evil/a", "/", "/rr"])
def test_a_path_outside_every_root_is_refused(path):
    with pytest.raises(RefusedError) as error:
        roots.resolve(Scope(roots=("/r", "/s/t")), path)
    assert error.value.code == "scope.outside"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/r/../etc", "", "a\0b", "files:/r/%2e%2e/x"])
def test_a_path_that_goes_up_is_empty_or_holds_a_nul_is_refused(path):
    with pytest.raises(UsageError) as error:
        roots.resolve(Scope(roots=("/r",)), path)
    assert error.value.code == "files.path"


def test_without_a_scope_the_way_to_the_folder_is_made_real(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    found = roots.resolve(None, str(tmp_path / "link" / "file"))
    assert found == bytes(tmp_path.resolve() / "real" / "file")
    with pytest.raises(UsageError):
        roots.resolve(None, "relative")


def test_a_scope_without_roots_allows_nothing():
    with pytest.raises(RefusedError):
        roots.require(Scope(), b"/r/a")
    roots.require(None, b"/r/a")


def test_a_root_itself_is_known():
    assert roots.is_root(Scope(roots=("/r/",)), b"/r")
    assert roots.is_root(None, b"/")
    assert not roots.is_root(Scope(roots=("/r",)), b"/r/a")
