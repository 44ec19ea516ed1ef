"""A headless Chromium that opens a page and says what it saw (its DevTools protocol, by pipe)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PATIENCE = 60.0
"""Seconds for an answer: the machine may be busy."""


@dataclass
class Page:
    """What a page asked for and complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)


def program() -> str | None:
    """Return the path of Chromium, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start Chromium with a profile in `folder`, and stop it."""
    path = program()
    assert path is not None
    to_child, from_us = os.pipe()
    to_us, from_child = os.pipe()
    # The protocol's pipes are the file descriptors 3 and 4.
    command = f'exec "$@" 3<&{to_child} 4>&{from_child}'
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    options += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", command, "chromium", path, *options],
        pass_fds=(to_child, from_child),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_child)
    os.close(from_child)
    os.set_blocking(to_us, False)
    try:
        yield Browser(from_us, to_us)
    finally:
        process.terminate()
        process.wait(30)
        os.close(from_us)
        os.close(to_us)


class Browser:
    """The protocol: numbered questions, answers, and events in between.

    All pages open in one tab: a new one takes longer than most pages.
    """

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._number = 0
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        tab = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=tab, flatten=True)
        self._session: str = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable", self._session)

    def visit(self, file: Path, width: int, scripts: dict[str, str], *, dark: bool = False) -> Page:
        """Open a file in a window of this width, and evaluate scripts in it, by name."""
        session = self._session
        self._ask(
            "Emulation.setDeviceMetricsOverride", session,
            width=width, height=900, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", session, features=[scheme])
        self._events.clear()
        self._ask("Page.navigate", session, url=file.as_uri())
        self._wait_for("Page.loadEventFired")
        page = Page()
        for name, script in scripts.items():
            answer = self._ask(
                "Runtime.evaluate",
                session,
                expression=script,
                returnByValue=True,
                awaitPromise=True,
            )
            page.results[name] = answer["result"].get("value")
        for event in self._events:
            told = event.get("params", {})
            if event["method"] == "Network.requestWillBeSent":
                page.requests.append(told["request"]["url"])
            elif event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded"):
                page.complaints.append(json.dumps(told))
            elif event["method"] == "Runtime.consoleAPICalled":
                page.complaints.append(json.dumps(told["args"]))
        return page

    def _ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        question: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            question["sessionId"] = session
        os.write(self._write, json.dumps(question).encode() + b"\0")
        for message in self._messages():
            if message.get("id") == self._number:
                assert "error" not in message, message
                return dict(message["result"])
            if "method" in message:
                self._events.append(message)
        raise AssertionError(f"expected an answer to {method} within {_PATIENCE} s")

    def _wait_for(self, method: str) -> None:
        if any(event["method"] == method for event in self._events):
            return
        for message in self._messages():
            if "method" in message:
                self._events.append(message)
                if message["method"] == method:
                    return
        raise AssertionError(f"expected {method} within {_PATIENCE} s")

    def _messages(self) -> Iterator[dict[str, Any]]:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            head, found, tail = self._rest.partition(b"\0")
            if found:
                self._rest = tail
                yield json.loads(head)
                continue
            try:
                self._rest += os.read(self._read, 2**20)
            except BlockingIOError:
                time.sleep(0.01)
