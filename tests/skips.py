"""`--no-unexpected-skips`: a test that is skipped where it could run proves nothing, so CI fails then."""

from typing import Any

import pytest

# The starts of the only reasons that are expected: data that cannot be part of the repository.
NEEDS_SHARED = "needs ../shared"
NEEDS_WORDNET = "needs WordNet"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--no-unexpected-skips",
        action="store_true",
        help=f"fail if a test is skipped for another reason than {NEEDS_SHARED!r} or {NEEDS_WORDNET!r}, or is expected to fail",
    )


def unexpected_skips(config: pytest.Config) -> list[str]:
    """RETURNS (list[str]): One line for each test that did not run, or whose failure did not count."""
    # Where xdist distributes tests, only the main process reports.
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not config.getoption("--no-unexpected-skips"):
        return []
    lines = []
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith((NEEDS_SHARED, NEEDS_WORDNET)):
            lines.append(f"{report.nodeid}: {reason}")
    lines += [f"{report.nodeid}: expected to fail" for report in reporter.stats.get("xfailed", [])]
    return lines


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn success into failure."""
    if session.exitstatus == pytest.ExitCode.OK and unexpected_skips(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say why."""
    if lines := unexpected_skips(config):
        terminalreporter.section("unexpected skips", red=True, bold=True)
        for line in lines:
            terminalreporter.line(line)
