"""Jobs that are begun before it is known whether they are wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lkm_gpflow.runtime.ahead import Ahead
from lkm_gpflow.runtime.executors import run_all

SECONDS = 60.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_a_worker_without_a_job_begins_what_may_come_next(pool: ThreadPoolExecutor) -> None:
    """The job that is wanted ends only when the other one has begun, which is done once."""
    begun, count = threading.Event(), list[str]()

    def wanted() -> str:
        assert begun.wait(SECONDS)
        return "wanted"

    def next_one() -> str:
        begun.set()
        count.append("next")
        return "next"

    ahead = Ahead(pool, 2)
    ahead.expect({"b": next_one})
    assert dict(run_all({"a": wanted}, pool, ahead=ahead)) == {"a": "wanted"}
    assert dict(run_all({"b": next_one}, pool, ahead=ahead)) == {"b": "next"}
    assert count == ["next"]


def test_no_more_jobs_begin_than_there_are_workers(pool: ThreadPoolExecutor) -> None:
    end, count = threading.Event(), list[int]()

    def job(number: int) -> Callable[[], bool]:
        def run() -> bool:
            count.append(number)
            return end.wait(SECONDS)

        return run

    ahead = Ahead(pool, 2)
    ahead.expect({number: job(number) for number in range(3)})
    ahead.begin(busy=2)
    assert ahead.take(0) is None
    ahead.begin(busy=1)
    ahead.begin(busy=1)
    first = ahead.take(0)
    assert first is not None
    assert ahead.take(1) is None
    end.set()
    assert first.result(SECONDS)
    assert count == [0]


def test_what_was_dropped_is_done_again_when_it_is_wanted(pool: ThreadPoolExecutor) -> None:
    count: list[int] = []

    def job() -> int:
        count.append(1)
        return len(count)

    ahead = Ahead(pool, 2)
    ahead.expect({"a": job})
    ahead.begin(busy=0)
    ahead.drop()
    ahead.begin(busy=0)  # nothing is expected any more
    pool.submit(int).result(SECONDS)
    done = dict(run_all({"a": job}, pool, ahead=ahead))
    assert done == {"a": len(count)}


def test_in_one_process_and_where_no_jobs_are_taken_nothing_begins() -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    for executor in (None, closed):
        ahead = Ahead(executor, 1)
        ahead.expect({"a": int})
        ahead.begin(busy=0)
        assert ahead.take("a") is None
    assert dict(run_all({"a": int}, None, ahead=ahead)) == {"a": 0}


def test_a_job_that_failed_ahead_fails_when_it_is_wanted(pool: ThreadPoolExecutor) -> None:
    def fail() -> int:
        raise ArithmeticError("not this one")

    ahead = Ahead(pool, 2)
    ahead.expect({"a": fail})
    ahead.begin(busy=0)
    with pytest.raises(ArithmeticError, match="not this one"):
        list(run_all({"a": fail}, pool, ahead=ahead))


def test_what_is_wanted_later_begins_first_and_outlives_a_drop(pool: ThreadPoolExecutor) -> None:
    begun, end = list[str](), threading.Event()

    def job(name: str) -> Callable[[], str]:
        def run() -> str:
            begun.append(name)
            end.wait(SECONDS)
            return name

        return run

    ahead = Ahead(pool, 2)
    ahead.expect({"perhaps": job("perhaps")})
    ahead.want({"later": job("later")})
    ahead.begin(busy=1)
    ahead.begin(busy=0)
    ahead.drop()
    end.set()
    later, perhaps = ahead.take("later"), ahead.take("perhaps")
    assert later is not None
    assert later.result(SECONDS) == "later"
    assert perhaps is None
    assert begun[0] == "later"
    ahead.begin(busy=0)
    assert ahead.take("later") is None  # it was taken: nobody waits for it any more


def test_what_was_closed_begins_nothing_and_has_nothing(pool: ThreadPoolExecutor) -> None:
    ahead = Ahead(pool, 2)
    ahead.want({"begun": int, "not yet": int})
    ahead.begin(busy=1)
    ahead.close()
    ahead.begin(busy=0)
    assert ahead.take("begun") is None
    assert ahead.take("not yet") is None
