# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the pauses between state requests: short at first, then the configured interval, never
beyond the end.
"""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import (
    PollInterval,
    PollTimeout,
)


class Clock:
    def __init__(self) -> None:
        self.time = 100.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds


def polling_of(clock: Clock, timeout: float, interval: float) -> PollInterval:
    return PollInterval(timeout, interval, now=clock.now, sleep=clock.sleep)


def test_pauses_grow_to_the_interval_until_timeout() -> None:
    clock = Clock()
    polling = polling_of(clock, 6.0, 2.0)
    for _number in range(5):
        polling.pause("it goes on")
    with pytest.raises(PollTimeout, match=r"it goes on; wait_timeout \(6 s\) expired"):
        polling.pause("it goes on")
    assert clock.pauses == pytest.approx([0.5, 0.75, 1.125, 1.6875, 1.9375])
    assert (polling.passed, polling.left) == (6.0, 0.0)


def test_expected_end_shortens_the_pause() -> None:
    clock = Clock()
    polling = polling_of(clock, 60.0, 10.0)
    for expected in (None, 0.6, 0.1, -3.0):
        polling.pause("it goes on", expected)
    # not shorter than the first pause; an expected end in the past has no effect
    assert clock.pauses == pytest.approx([0.5, 0.6, 0.5, 1.6875])
