# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the requests of a task [C1.3]."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Accounting:
    """Request counts of a task, or of a part of a task.

    :param acknowledged: writes with a successful response
    :param total: counts of the whole task, if this object counts a part; `add` updates both objects
    """

    requests: int = 0
    writes: int = 0
    acknowledged: int = 0
    retries: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    seconds: float = 0.0
    total: Accounting | None = field(default=None, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counts: float) -> None:
        counters = self.__dict__
        with self._lock:
            for name, count in counts.items():
                counters[name] += count
        if self.total is not None:
            self.total.add(**counts)

    def as_dict(self) -> dict[str, Any]:
        """Return the return value `http`: requests, bytes of bodies, and seconds."""
        names = ("requests", "writes", "retries", "bytes_sent", "bytes_received")
        return {**{name: getattr(self, name) for name in names}, "seconds": round(self.seconds, 3)}
