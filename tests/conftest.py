# SPDX-License-Identifier: GPL-3.0-or-later
"""Sandboxes that the tests share: one process per flavour, started when it is first asked for.

And the settings of Hypothesis: no test depends on how fast the machine is.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import hidden
from sandbox.client import Sandbox

#: Gives the sandbox of a flavour, in the state of the seeds.
Fresh = Callable[[str], Sandbox]

# In a fresh checkout Hypothesis makes its table of characters first; on a busy machine that takes
# longer than it allows for drawing values.
settings.register_profile("toolchain", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("toolchain")
# What a shell starts in the background ignores Ctrl-C, and so would what the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--separate-steps",
        type=int,
        default=3,
        help="how many steps of a contract case run in separate processes; 0: all",
    )


@pytest.fixture(autouse=True)
def nothing_hidden() -> Iterator[None]:
    """What one test hides is not masked in another."""
    yield
    hidden.clear()


@pytest.fixture(scope="session")
def fresh() -> Iterator[Fresh]:
    """`fresh("real")`: the running sandbox of that flavour, reset."""
    started: dict[str, Sandbox] = {}

    def reset(flavour: str) -> Sandbox:
        if flavour not in started:
            started[flavour] = Sandbox.start(flavour=flavour)
        started[flavour].reset()
        return started[flavour]

    yield reset
    for sandbox in started.values():
        sandbox.stop()
