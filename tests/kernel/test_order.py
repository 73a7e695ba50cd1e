"""The graph of needs: circles are found whole, wishes of order never close one."""

from hypothesis import given
from hypothesis import strategies as st

from takeback.manifest import Manifest
from takeback.order import Order

NAMES = [f"m{number}" for number in range(7)]
graphs = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), unique=True, max_size=4))


def ordered(needs, after=None):
    after = after or {}
    names = sorted({*needs, *after})
    return Order(
        {
            name: Manifest(1, name, "x", tuple(needs.get(name, ())), tuple(after.get(name, ())))
            for name in names
        }
    )


def test_a_circle_names_each_member_its_own_way_round():
    order = ordered({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"], "e": ["d"], "f": []})
    assert order.cycles == {
        "a": "needs itself through a -> b -> c -> a",
        "b": "needs itself through b -> c -> a -> b",
        "c": "needs itself through c -> a -> b -> c",
        "d": "needs a, which needs itself through a -> b -> c -> a",
        "e": "needs a, which needs itself through a -> b -> c -> a",
    }


def test_two_circles_are_both_found():
    order = ordered({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]})
    assert set(order.cycles) == {"a", "b", "c", "d"}
    assert order.cycles["d"] == "needs itself through d -> c -> d"


def test_an_order_that_would_close_a_circle_is_dropped():
    order = ordered({"a": [], "b": ["a"]}, {"a": ["b", "c"], "c": ["a", "ghost"]})
    assert order.cycles == {}
    assert order.after == {"a": ("c",), "b": (), "c": ()}


def test_above_is_everything_that_leans_on_a_module():
    order = ordered({"a": [], "b": ["a"], "c": ["b"], "d": []})
    assert order.above("a") == {"b", "c"}
    assert order.above("d") == set()


def reaches(graph, start):
    found, todo = set(), list(graph.get(start, ()))
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo.extend(graph.get(here, ()))
    return found


@given(graphs, graphs)
def test_exactly_those_on_circles_and_their_dependents_are_named(needs, after):
    needs = {name: [other for other in others if other != name] for name, others in needs.items()}
    order = ordered(needs, after)
    circular = {name for name in order.needs if name in reaches(order.needs, name)}
    expected = {name for name in order.needs if circular & ({name} | reaches(order.needs, name))}
    assert set(order.cycles) == expected
    both = {name: [*order.needs[name], *order.after[name]] for name in order.needs}
    assert {name for name in both if name in reaches(both, name)} == circular
