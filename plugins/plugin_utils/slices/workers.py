# SPDX-License-Identifier: GPL-3.0-or-later
"""The workers of a sliced run: this machine, machines behind SSH, nodes of a Receptor mesh."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible import constants

#: Where this collection was found.
_COLLECTIONS = Path(__file__).absolute().parents[6]
SCRIPT = Path(__file__).resolve().with_name("worker.sh")
_KINDS = ("local", "ssh", "receptor")
#: What neither a shell nor the option parser of a program reads as anything but a name.
_NAME = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:@%\[\]-]*")
#: What SSH ends with where it is the connection that failed.
_NO_CONNECTION = 255
#: How receptorctl tells that the work has ended over there.
_UNIT_ENDED = re.compile(r"Remote unit failed: (exit status|signal)")
#: The name of the work that nodes of a mesh offer.
WORK_TYPE = "toolchain-slice"


class SlicesError(Exception):
    """The slices cannot be run as they were asked for; the text says why, in one sentence."""


@dataclass(frozen=True)
class Worker:
    """Who runs slices.

    :param kind: C(local), C(ssh) or C(receptor)
    :param place: the machine, or the node; empty for this machine
    """

    kind: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}" if self.place else self.kind

    def command(self, folder: str) -> list[str]:
        """What takes the stream of a slice and gives back that of its results; C(folder) is made
        for it there, and goes with it.
        """
        if self.kind == "local":
            return ["sh", str(SCRIPT), folder]
        if self.kind == "receptor":
            work = ["work", "submit", WORK_TYPE, "--node", self.place, "--payload", "-"]
            return ["receptorctl", *work, "--param", f"params={folder}", "--follow", "--rm"]
        alive = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"]
        script = shlex.join(["sh", "-c", SCRIPT.read_text("utf-8"), "worker.sh", folder])
        return ["ssh", "-T", "-o", "BatchMode=yes", *alive, self.place, script]

    def has_ended(self, status: int, words: str) -> bool:
        """Whether a command that ended so, without results, left nothing running over there."""
        if self.kind == "receptor":
            return status == 0 or _UNIT_ENDED.search(words) is not None
        # a script that was killed could not end what it had started
        return status >= 0 and (self.kind == "local" or status != _NO_CONNECTION)

    def environment(self) -> dict[str, str]:
        """The environment of the command. The connections are in the stream alone."""
        names = [name for name in os.environ if not name.startswith("TOOLCHAIN_")]
        found = {name: os.environ[name] for name in names}
        if self.kind != "local":
            return found
        # a slice begins in another folder, and is to find the same settings and collections
        paths = [str(_COLLECTIONS), *constants.config.get_config_value("COLLECTIONS_PATHS")]
        programs = [str(Path(sys.executable).parent), found.get("PATH", os.defpath)]
        found["ANSIBLE_COLLECTIONS_PATH"] = os.pathsep.join(dict.fromkeys(map(str, paths)))
        found["PATH"] = os.pathsep.join(programs)
        # who is told of a run is not told of each of its parts
        found["ANSIBLE_CALLBACKS_ENABLED"] = "delivery.toolchain.report"
        if constants.CONFIG_FILE:
            found["ANSIBLE_CONFIG"] = str(constants.CONFIG_FILE)
        return found


def workers(value: Any, slices: int | None) -> list[Worker]:
    """The workers that C(drift_workers) names: a list, or a text with commas. Without it there are
    as many here as the machine has processors, but no more than slices.
    """
    if value is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        return [Worker("local")] * min(slices or cores, cores)
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Sequence) or not value:
        raise SlicesError(f"drift_workers is a list of workers, not {value!r}: {_takes()}.")
    return [_worker(f"drift_workers[{number}]", one) for number, one in enumerate(value)]


def _worker(where: str, value: Any) -> Worker:
    text = value.strip() if isinstance(value, str) else ""
    kind, colon, place = text.partition(":")
    if kind == "local" and not colon:
        return Worker(kind)
    if kind in _KINDS[1:] and _NAME.fullmatch(place):
        return Worker(kind, place)
    near = difflib.get_close_matches(kind, _KINDS, 1) if kind not in _KINDS else []
    meant = f" (is {near[0]} meant?)" if near else ""
    raise SlicesError(f"{where} is {value!r}{meant}: {_takes()}.")


def _takes() -> str:
    return "a worker is local, ssh:HOST or receptor:NODE"


def slices(value: Any, count: int) -> int:
    """How many slices C(drift_slices) wants; without it one for each of so many workers."""
    if value is None:
        return count
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise SlicesError(f"drift_slices is a whole number of at least 1, not {value!r}.")
    return number


def settings(count: Any, named: Any) -> tuple[int, list[Worker]]:
    """The number of slices and the workers, as C(drift_slices) and C(drift_workers) say."""
    found = workers(named, None if count is None else slices(count, 1))
    return slices(count, len(found)), found
