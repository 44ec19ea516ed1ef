"""Progress: news from where the work is done, a clock that goes on, Ctrl-C in one line."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from jobs import tell_and_wait

from lkm_gpflow.runtime import news as news_module
from lkm_gpflow.runtime import progress as progress_module
from lkm_gpflow.runtime.executors import check_executor, kept_in, num_workers, process_pool, run_all
from lkm_gpflow.runtime.news import heard_by, tell
from lkm_gpflow.runtime.progress import Progress, part_of
from lkm_gpflow.runtime.text import duration


def test_news_are_not_made_where_nobody_listens() -> None:
    tell(lambda: pytest.fail("the words were made"))


def test_the_listener_of_a_context_hears_and_the_one_before_is_put_back() -> None:
    heard: list[str] = []
    with heard_by(heard.append):
        tell(lambda: "one")
        with heard_by(None):
            tell(lambda: "two")
        tell(lambda: "three")
    tell(lambda: "four")
    assert heard == ["one", "three"]


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (24, 0), (24, 60)])
def test_a_terminal_that_does_not_say_its_size_shows_progress(rows: int, columns: int) -> None:
    pty, fcntl = pytest.importorskip("pty"), pytest.importorskip("fcntl")  # not on Windows
    termios = pytest.importorskip("termios")
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    code = (
        "from lkm_gpflow.runtime.progress import part_of\n"
        "with part_of(True, 'fits', 3) as bar: bar.update()"
    )
    command = [sys.executable, "-c", code]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, check=True)
    os.close(terminal)
    shown = os.read(reader, 10_000).decode().split("\r")
    os.close(reader)
    assert any(line.startswith("about 1 s left |") for line in shown)
    assert max(len(line.strip()) for line in shown) <= (columns or 80)


@pytest.mark.parametrize("where", ["here", "threads", "processes"])
def test_news_of_jobs_are_heard(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news_module.tempfile, "tempdir", str(tmp_path))
    heard: list[str] = []
    jobs = {name: partial(tell_and_wait, name, 1.2) for name in "ab"}
    pools: dict[str, Executor | None] = {
        "here": None, "threads": ThreadPoolExecutor(1), "processes": process_pool(1),
    }  # fmt: skip
    pool = pools[where]
    try:
        assert dict(run_all(jobs, pool, hear=heard.append)) == {"a": "a", "b": "b"}
    finally:
        for each in pools.values():
            if each is not None:
                each.shutdown()
    assert heard == ["a begins", "b begins"]
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_clock_goes_on_while_the_work_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(progress_module, "_BEAT", 0.05)
    monkeypatch.setattr(
        progress_module, "tqdm", partial(progress_module.tqdm, file=terminal, mininterval=0)
    )
    with part_of(True, "search", 2) as bar:
        bar.left(200.0, 2000.0)
        bar.hear("adding SE")
        before = len(terminal.getvalue())
        time.sleep(0.5)
        assert terminal.getvalue()[before:].count("3 min to 33 min left") >= 3
        bar.update()
        assert "search, 1 of 2" in terminal.getvalue().split("\r")[-1]
    shown = terminal.getvalue()
    assert "search: adding SE" in shown
    assert shown.split("\r")[-1].startswith("done |")
    assert "100%" in shown.split("\r")[-1]
    after = len(terminal.getvalue())
    time.sleep(0.2)
    assert len(terminal.getvalue()) == after


def test_a_log_file_gets_few_lines() -> None:
    code = (
        "from lkm_gpflow.runtime.progress import part_of\n"
        "with part_of(True, 'search', 20) as bar:\n"
        "    for number in range(20):\n"
        "        for word in 'ab': bar.hear(f'{word} enters {number}')\n"
        "        bar.update()\n"
    )
    log = subprocess.run(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=True
    ).stderr
    lines = [line for line in log.replace("\n", "\r").split("\r") if line.strip()]
    assert len(lines) == 2
    assert lines[-1].startswith("done |")
    assert max(map(len, lines)) <= 80


def test_one_bar_for_all_parts_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time left stands first, parts follow each other, and the bar never falls."""
    terminal, now = Terminal(), [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        progress_module, "tqdm", partial(progress_module.tqdm, file=terminal, mininterval=0)
    )
    with Progress() as bar:
        bar.later = 100.0
        with part_of(bar, "search"):
            bar.left(300.0)
            now[0] = 100.0
            bar.hear("trying PER x RW x SE x LIN anew, which is long")
            bar.left(900.0)
            bar.hear("refining")
        bar.later = 0.0
        with part_of(bar, "forecast weights", 2):
            for now[0] in (200.0, 300.0):
                bar.update()
    lines = [line for line in re.split(r"[\r\n]", terminal.getvalue()) if "left |" in line]
    assert max(map(len, lines)) <= 80
    assert [line.partition(" left")[0] for line in lines if "weights, 1" in line] == ["about 2 min"]
    shares = [int(found[0]) for line in lines if (found := re.findall(r"(\d+)%", line))]
    assert shares == sorted(shares)
    assert any("search: trying PER x RW x SE x LI..." in line for line in lines)


def test_nothing_is_shown_if_it_is_not_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    with part_of(False, "search", 2) as bar:
        bar.left(10.0)
        bar.hear("adding SE")
        bar.update()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("prices.jsonl", r"kept in prices\.jsonl, and the same call"),
        (None, r"nothing is kept.* with ledger='FILE'"),
    ],
)
def test_ctrl_c_says_how_to_go_on(path: str | None, message: str) -> None:
    with pytest.raises(KeyboardInterrupt, match=message) as stopped, kept_in(path, "ledger"):
        raise KeyboardInterrupt
    assert stopped.value.__suppress_context__


def interrupt_when_busy(pool: Executor) -> None:
    future = pool.submit(partial(tell_and_wait, "a", 60.0))
    while not future.running():
        time.sleep(0.05)
    raise KeyboardInterrupt


def test_a_pool_that_is_left_by_ctrl_c_does_not_wait() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), process_pool(1) as pool:
        interrupt_when_busy(pool)
    assert time.monotonic() - began < 40.0


def test_executors_are_counted_and_checked() -> None:
    assert num_workers(None) == 1
    with ThreadPoolExecutor(3) as threads:
        assert num_workers(threads) == 3
        check_executor(threads)
    check_executor(None)

    class Client:
        def get_executor(self) -> None:
            """As Dask's client."""

    with pytest.raises(ValueError, match=r"got Client .*client\.get_executor\(\)"):
        check_executor(Client())


def test_durations() -> None:
    assert [duration(s) for s in (0.2, 7.4, 34.0, 99.0, 100.0, 3000.0, 7200.0)] == [
        "1 s", "7 s", "30 s", "100 s", "2 min", "50 min", "2 h",
    ]  # fmt: skip
