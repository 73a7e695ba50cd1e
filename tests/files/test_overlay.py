"""The overlay of a rehearsal: what it has put where, whatever the names and the order."""

from hypothesis import given
from hypothesis import strategies as st

from takeback.errors import RefusedError
from takeback_acts.files.overlay import Overlay
from takeback_acts.files.paths import beneath
from takeback_acts.files.states import State
from takeback_acts.files.trees import NOTHING, Seen

# `-` and `.` sort before the slash and `0` after it.
NAMES = st.sampled_from([b"a", b"a-", b"a.", b"a0", b"b"])
PATHS = st.lists(NAMES, max_size=3).map(lambda parts: b"/" + b"/".join(parts))
LINK = RefusedError("files.link", "A part of it is a link")


@given(st.lists(PATHS, max_size=12), PATHS)
def test_it_knows_what_it_holds_around_and_within_every_path(put, asked):
    overlay = Overlay()
    kept: dict[bytes, Seen] = {}
    for number, path in enumerate(put):
        seen = Seen(State(kind="file", sha256=f"{number:064x}"))
        overlay.put(path, seen)
        kept = {key: old for key, old in kept.items() if not beneath(key, path)} | {path: seen}
    assert overlay.holds_inside(asked) is any(key != asked and beneath(key, asked) for key in kept)
    assert overlay.hides(asked, LINK) is any(beneath(asked, key) for key in kept)
    for path, seen in kept.items():
        assert overlay.over(path, NOTHING) == seen
