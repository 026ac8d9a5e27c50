"""The option by which CI refuses skipped tests."""

import pytest

pytest_plugins = ["pytester"]

CONFTEST = "from tests.skips import pytest_addoption, pytest_sessionfinish, pytest_terminal_summary"
RUNS = "def test_runs(): pass\n"
SKIPPED = "import pytest\ndef test_it(): pytest.skip({reason!r})\n"


@pytest.mark.parametrize(
    ("source", "line", "options"),
    [
        (SKIPPED.format(reason="it is Monday"), "*test_it: it is Monday", ()),
        pytest.param(
            *(SKIPPED.format(reason="it is Monday"), "*test_it: it is Monday", ("-n", "1")), marks=pytest.mark.slow
        ),
        ("import pytest\npytest.importorskip('no_such_module')\n", "*could not import 'no_such_module'*", ()),
        ("import pytest\n@pytest.mark.xfail\ndef test_it(): assert False\n", "*test_it: expected to fail", ()),
    ],
    ids=["skip", "xdist", "importorskip", "xfail"],
)
def test_unexpected_skips_fail(pytester: pytest.Pytester, source: str, line: str, options: tuple[str, ...]) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_runs=RUNS, test_source=source)
    result = pytester.runpytest_inprocess("--no-unexpected-skips", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*unexpected skips*", line])


def test_skips_do_not_matter_without_the_option(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_runs=RUNS, test_source=SKIPPED.format(reason="it is Monday"))
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.OK


def test_skips_without_shared_data_are_expected(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(RUNS, test_source=SKIPPED.format(reason="needs ../shared: stored outputs"))
    result = pytester.runpytest_inprocess("--no-unexpected-skips", "-rs")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["SKIPPED * needs ../shared: stored outputs"])
    result.stdout.no_fnmatch_line("*unexpected skips*")
