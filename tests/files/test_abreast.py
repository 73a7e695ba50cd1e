"""The same done to many things by a few threads."""

import threading

import pytest

from takeback_acts.files.abreast import abreast


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 257])
def test_answers_come_in_order(count):
    assert abreast(lambda number: number * 2, range(count)) == [number * 2 for number in range(count)]


def test_many_are_done_side_by_side():
    met = threading.Barrier(4)

    def work(number):
        if number % 25 == 0:
            met.wait(30)
        return number

    assert abreast(work, range(100)) == list(range(100))


@pytest.mark.parametrize("count", [10, 400])
def test_a_failure_is_raised_once_nobody_works_any_more(count):
    at_work, done = [], []

    def work(number):
        at_work.append(number)
        try:
            if number == 5:
                raise KeyError(number)
        finally:
            done.append(number)

    with pytest.raises(KeyError):
        abreast(work, range(count))
    assert sorted(at_work) == sorted(done)
    assert len(done) < count
