"""What events come to, in whatever order triggers made them."""

import pytest

from takeback.errors import RefusedError
from takeback_acts.rows.changes import Change, Event, net
from takeback_acts.rows.tables import Catalog, Column, Table

T = Table("t", (Column("k", "INTEGER", False), Column("v", "", True)), ("k",))
CATALOG = Catalog({"t": T}, {})


def came(*events):
    return [tuple(change) for change in net([Event("t", *event) for event in events], CATALOG)]


def test_events_of_one_row_are_one_change_in_any_order():
    events = [((1, "a"), (1, "b")), ((1, "b"), (1, "c")), ((1, "c"), (1, "d"))]
    assert came(*events) == came(*events[::-1]) == [("t", (1, "a"), (1, "d"))]


def test_rows_that_exchange_keys_are_told_apart():
    assert came(((1, "a"), (9, "a")), ((2, "b"), (1, "b")), ((9, "a"), (2, "a"))) == [
        ("t", (1, "a"), (2, "a")),
        ("t", (2, "b"), (1, "b")),
    ]


def test_rows_that_all_move_on_by_one():
    assert came(((1, "a"), (2, "a")), ((2, "b"), (3, "b"))) == [
        ("t", (1, "a"), (2, "a")),
        ("t", (2, "b"), (3, "b")),
    ]


@pytest.mark.parametrize(
    "events",
    [
        [(None, (1, "a")), ((1, "a"), None)],
        [((1, "a"), None), (None, (1, "a"))],
        [((1, "a"), (1, "b")), ((1, "b"), (1, "a"))],
        [((1, "a"), (1, "a"))],
        [((2, "a"), (1, "a")), ((1, "a"), None), (None, (2, "a"))],
    ],
)
def test_what_comes_to_nothing_is_no_change(events):
    assert came(*events) == []


def test_a_row_deleted_and_another_put_in_its_place_is_an_update():
    assert came(((1, "a"), None), (None, (1, "b"))) == [("t", (1, "a"), (1, "b"))]


def test_a_row_that_came_under_the_key_of_one_that_went_is_an_update():
    assert came((None, (3, "n")), ((1, "a"), None), ((3, "n"), (1, "n"))) == [("t", (1, "a"), (1, "n"))]


def test_values_that_differ_by_type_alone_are_followed():
    assert came(((1, 1), (1, 1.0)), ((1, 1.0), (1, True)))[0][1:] == ((1, 1), (1, True))


def test_what_can_not_be_followed_is_refused():
    with pytest.raises(RefusedError) as caught:
        came(((1, "a"), (1, "b")), ((1, "a"), (1, "c")))
    assert caught.value.code == "rows.capture"


def test_the_order_is_that_of_the_first_events():
    assert net(
        [
            Event("t", None, (3, 0)),
            Event("t", (1, 0), (1, 1)),
            Event("t", (3, 0), (3, 1)),
            Event("t", (2, 0), None),
        ],
        CATALOG,
    ) == [Change("t", None, (3, 1)), Change("t", (1, 0), (1, 1)), Change("t", (2, 0), None)]
