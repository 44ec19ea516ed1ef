"""Figures of the benchmarks: collected while they run, printed at the end, kept in the JSON."""

from __future__ import annotations

from collections.abc import Callable

import pytest

_FIGURES: list[str] = []


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Report a figure beside its limit, and fail if it is above."""

    def report(what: str, value: float, limit: float) -> None:
        _FIGURES.append(f"{what}: {value:.3g} (limit {limit:g})")
        if "benchmark" in request.fixturenames:
            request.getfixturevalue("benchmark").extra_info[what] = value
        assert value <= limit

    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _FIGURES:
        terminalreporter.section("figures")
        for line in _FIGURES:
            terminalreporter.write_line(line)
