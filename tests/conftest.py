# SPDX-License-Identifier: GPL-3.0-or-later
"""Provide the sandboxes that the tests share: one process per flavour, started on first use.

Configure Hypothesis, too, so that no test depends on the speed of the machine.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import hidden
from sandbox.client import Sandbox
from tests.helpers import measured, openapi, playbook

#: Returns the sandbox of a flavour, reset to its seeds. None: the flavours of the seeds.
Fresh = Callable[[str | None], Sandbox]

# In a fresh checkout, Hypothesis first builds its character table. On a busy machine this exceeds
# its time limit for drawing values.
# `pytest --hypothesis-profile thorough` tries more examples.
for _name, _examples in {"toolchain": 30, "thorough": 1000}.items():
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("toolchain")
# A shell starts background processes with SIGINT ignored. Child processes that the tests interrupt
# would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)


_METER = pytest.StashKey[measured.Meter]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-step",
        action="store_true",
        help="run every step of the contract cases also in Ansible",
    )
    parser.addoption(
        "--specs",
        type=Path,
        default=openapi.FOLDER,
        help="folder with the OpenAPI documents that judge the contract cases",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector leave out the modules and tests, and run less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    session.stash[_METER] = meter = measured.Meter()
    session.config.add_cleanup(meter.close)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Add the measures of a test to its report."""
    try:
        yield
    finally:
        item.user_properties += item.session.stash[_METER].properties()


@pytest.fixture(autouse=True)
def nothing_hidden() -> Iterator[None]:
    """Reset the masked values, so that secrets of a test are not masked in other tests."""
    yield
    hidden.clear()


@pytest.fixture(scope="session", autouse=True)
def plays() -> Iterator[None]:
    """Let all plays of the tests share the imports of Ansible."""
    with playbook.served():
        yield


@pytest.fixture(scope="session")
def fresh() -> Iterator[Fresh]:
    """Return a function: `fresh("real")` returns the running sandbox of that flavour, reset."""
    started: dict[str | None, Sandbox] = {}

    def reset(flavour: str | None) -> Sandbox:
        if flavour not in started:
            started[flavour] = Sandbox.start(flavour=flavour)
        started[flavour].reset()
        return started[flavour]

    yield reset
    for sandbox in started.values():
        sandbox.stop()
