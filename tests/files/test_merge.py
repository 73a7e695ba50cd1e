"""Merging text: each side's lines, or nothing."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback_acts.files.merge import MOST_BYTES, MOST_LINES, is_text, merge

BASE = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"d"]), max_size=12).map(b"".join)


def test_changes_far_apart_are_both_made():
    ours = BASE.replace(b"two", b"TWO")
    theirs = BASE.replace(b"six", b"SIX")
    assert merge(BASE, ours, theirs) == BASE.replace(b"two", b"TWO").replace(b"six", b"SIX")


def test_insertions_deletions_and_replacements_go_together():
    ours = b"zero\n" + BASE.replace(b"four\n", b"")
    theirs = BASE.replace(b"two\n", b"2\n2\n") + b"eight\n"
    assert merge(BASE, ours, theirs) == b"zero\none\n2\n2\nthree\nfive\nsix\nseven\neight\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (BASE.replace(b"two", b"2"), BASE.replace(b"two", b"zwei")),
        (BASE.replace(b"two", b"2"), BASE.replace(b"three", b"3")),
        (BASE.replace(b"two\n", b""), BASE.replace(b"two", b"2")),
        (BASE + b"eight\n", BASE + b"acht\n"),
        (BASE.replace(b"three\n", b"three\nx\n"), BASE.replace(b"three\n", b"three\ny\n")),
    ],
    ids=["same line", "touching", "deleted and changed", "both at the end", "both at one place"],
)
def test_changes_that_overlap_or_touch_do_not_merge(ours, theirs):
    assert merge(BASE, ours, theirs) is None


def test_the_same_change_on_both_sides_is_made_once():
    both = BASE.replace(b"two", b"2")
    assert merge(BASE, both, both) == both
    assert merge(BASE, both + b"eight\n", b"zero\n" + both) == b"zero\n" + both + b"eight\n"


def test_line_endings_mark_and_missing_last_newline_stay():
    base = b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\nfour\r\nlast"
    ours = base.replace(b"two", b"2")
    theirs = base.replace(b"last", b"the end")
    assert merge(base, ours, theirs) == b"\xef\xbb\xbfone\r\n2\r\nthree\r\nfour\r\nthe end"


def test_only_line_endings_changed_conflicts_with_a_changed_line():
    assert merge(BASE, BASE.replace(b"\n", b"\r\n"), BASE.replace(b"two", b"2")) is None


def test_bytes_that_are_no_text_do_not_merge():
    assert not is_text(b"a\0b")
    assert merge(b"a\nb\nc\nd\0\n", b"A\nb\nc\nd\0\n", b"a\nb\nc\nD\0\n") is None


def test_what_is_too_large_does_not_merge():
    long = b"x" * MOST_BYTES + b"\n"
    assert merge(long, b"a\n" + long, long + b"b\n") is None
    many = b"\n".join(b"%d" % n for n in range(MOST_LINES + 2))
    assert merge(many, b"a\n" + many, many + b"\nb\n") is None
    assert merge(b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", most_lines=2) is None


def test_one_side_unchanged_gives_the_other_whatever_it_is():
    assert merge(b"\0base", b"\0base", b"\0theirs") == b"\0theirs"
    assert merge(b"\0base", b"\0ours", b"\0base") == b"\0ours"


@pytest.mark.parametrize("line", [b"same\n", b"%d\n"], ids=["equal lines", "every second line changed"])
def test_the_worst_texts_are_merged_or_given_up_quickly(line):
    base = [line % n if b"%" in line else line for n in range(MOST_LINES - 10)]
    ours = [b"x\n" if n % 2 else text for n, text in enumerate(base)]
    theirs = [*base, b"end\n"]
    started = time.perf_counter()
    merge(b"".join(base), b"".join(ours), b"".join(theirs))
    assert time.perf_counter() - started < 5


@given(texts, texts)
def test_a_change_of_one_side_alone_is_that_side(base, side):
    assert merge(base, side, base) == side
    assert merge(base, base, side) == side


@given(texts, texts, texts)
def test_sides_can_change_places(base, ours, theirs):
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


@given(texts, texts)
def test_undoing_beside_a_later_change_keeps_exactly_that_change(before, middle):
    """An act changed the head, a person the tail: taking the act back leaves the person's tail."""
    keep = b"k1\nk2\nk3\n"
    act = b"new head\n"
    now = act + keep + middle
    assert merge(act + keep, now, before + keep) in (before + keep + middle, None)
