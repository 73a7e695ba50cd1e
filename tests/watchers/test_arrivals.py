"""Arrivals: a file is taken when it has come or changed and stands still, by the clock it is given."""

from takeback_acts.watchers.arrivals import Arrivals, Mark

OLD, NEW, EMPTY = Mark(1, 10, 100), Mark(1, 20, 200), Mark(1, 0, 50)


def test_what_was_there_before_has_not_arrived():
    arrivals = Arrivals(settle=2)
    arrivals.begin({"a": OLD})
    arrivals.note({"a": OLD, "b": OLD}, now=0)
    assert arrivals.complete(now=2) == [("b", OLD)]


def test_a_file_is_complete_when_it_has_stood_still():
    arrivals = Arrivals(settle=2)
    arrivals.note({"a": OLD}, now=0)
    assert (arrivals.complete(now=1.9), arrivals.next_due()) == ([], 2)
    assert arrivals.complete(now=2) == [("a", OLD)]


def test_a_file_that_grows_begins_to_settle_anew():
    arrivals = Arrivals(settle=2)
    arrivals.note({"a": OLD}, now=0)
    arrivals.note({"a": NEW}, now=1.5)
    assert arrivals.complete(now=3) == []
    arrivals.note({"a": NEW}, now=3)
    assert arrivals.complete(now=3.5) == [("a", NEW)]


def test_an_empty_file_is_never_complete_and_never_due():
    arrivals = Arrivals(settle=0)
    arrivals.note({"a": EMPTY}, now=0)
    assert (arrivals.complete(now=1000), arrivals.next_due()) == ([], None)
    arrivals.note({"a": NEW}, now=1000)
    assert arrivals.complete(now=1000) == [("a", NEW)]


def test_what_is_left_alone_is_taken_again_when_it_has_changed():
    arrivals = Arrivals(settle=0)
    arrivals.note({"a": OLD}, now=0)
    arrivals.leave("a", OLD)
    arrivals.note({"a": OLD}, now=1)
    assert (arrivals.complete(now=1), arrivals.holds("a", OLD)) == ([], True)
    arrivals.note({"a": NEW}, now=2)
    assert (arrivals.complete(now=2), arrivals.holds("a", OLD)) == ([("a", NEW)], False)


def test_a_file_that_went_and_came_has_arrived_again():
    arrivals = Arrivals(settle=0)
    arrivals.begin({"a": OLD})
    arrivals.note({}, now=1)
    arrivals.note({"a": OLD}, now=2)
    assert arrivals.complete(now=2) == [("a", OLD)]


def test_a_folder_that_is_away_for_a_while_brings_nothing_anew():
    arrivals = Arrivals(settle=2)
    arrivals.begin({"a": OLD})
    arrivals.note({"a": OLD, "b": OLD}, now=0)
    arrivals.lost()
    assert arrivals.complete(now=9) == []
    arrivals.note({"a": OLD, "b": OLD}, now=10)
    assert (arrivals.complete(now=11), arrivals.complete(now=12)) == ([], [("b", OLD)])


def test_what_is_put_off_waits_until_then():
    arrivals = Arrivals(settle=2)
    arrivals.note({"a": OLD}, now=0)
    arrivals.put_off("a", until=60)
    arrivals.note({"a": OLD}, now=61)
    assert (arrivals.complete(now=61), arrivals.complete(now=62)) == ([], [("a", OLD)])
