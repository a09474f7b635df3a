"""Keep the machine that runs the tests out of them."""

import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

#: The real cluster. Named here, once: a fixture that two folders import would be two, and the
#: second would wait for the lock that the first holds.
pytest_plugins = ("tests.cluster.fixtures",)

#: Variables that change what Textual paints or what slurmtop reads.
_SCRUB_PREFIXES = (
    "TEXTUAL",
    "SQUEUE_",
    "SACCT_",
    "SINFO_",
    "SCONTROL_",
    "SCANCEL_",
    "SLURMTOP_UI_",
)
_SCRUB = ("NO_COLOR", "COLORTERM", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")

for _name in list(os.environ):
    if _name in _SCRUB or _name.startswith(_SCRUB_PREFIXES):
        del os.environ[_name]
os.environ["TERM"] = "xterm-256color"

# What is ignored here is ignored by every child: under nohup no program that is tested would
# ever notice that its terminal has gone.
for _signal in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

# A busy machine is no fault of the code: properties are about answers, never about times.
settings.register_profile(
    "slurmtop", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("slurmtop")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/*.txt anew (not in CI)"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden is refused in CI")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where every test is demanded, one that was skipped has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"no skip is allowed here: {report.longreprtext}"
    return report
