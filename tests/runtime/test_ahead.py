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

    ahead: Ahead[str, str] = Ahead(pool, 2)
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

    ahead: Ahead[int, bool] = Ahead(pool, 2)
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

    ahead: Ahead[str, int] = Ahead(pool, 2)
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
        ahead: Ahead[str, int] = Ahead(executor, 1)
        ahead.expect({"a": int})
        ahead.begin(busy=0)
        assert ahead.take("a") is None
    assert dict(run_all({"a": int}, None, ahead=ahead)) == {"a": 0}


def test_a_job_that_failed_ahead_fails_when_it_is_wanted(pool: ThreadPoolExecutor) -> None:
    def fail() -> int:
        raise ArithmeticError("not this one")

    ahead: Ahead[str, int] = Ahead(pool, 2)
    ahead.expect({"a": fail})
    ahead.begin(busy=0)
    with pytest.raises(ArithmeticError, match="not this one"):
        list(run_all({"a": fail}, pool, ahead=ahead))
