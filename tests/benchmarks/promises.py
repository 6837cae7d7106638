# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmarks promise about time. `docs/requests.md` has the same table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """Limits of wall and processor seconds, or of their ratios. None: nothing is promised."""

    wall: float | None
    processor: float | None = None
    at_least: bool = False
    unit: str = "ratio"
    #: Why the promise depends on the machine, or why only one kind of seconds is limited.
    note: str = ""


_WAITING = "the gain is in waiting, so that only the wall time falls"
_ABSOLUTE = "depends on the machine: seconds, not a ratio"
_FEW = "the processor ratio, of Python against C, depends on the machine"
_DIGESTS = "depends on the machine: how fast its processor makes digests"
_REQUEST = "depends on the machine: the task sends a request and waits for it, an assert does not"
_JF = "processor seconds of jf are only printed"

PROMISES = {
    # loop
    "in process, faster than a process and than uri": Promise(15.0, 15.0, at_least=True),
    "in process, against assert": Promise(3.0, 2.5, note=_REQUEST),
    "in a process, against ping": Promise(1.5, 1.5),
    # repo
    "deploy 1,000 files, 1 ms each, against curl": Promise(1.8, 7.0, note=_FEW),
    "deploy 1,000 files, 5 ms each, against curl": Promise(1.25, 7.0, note=_FEW),
    "deploy 1,000 files, 10 ms each, against curl": Promise(1.15, 7.0, note=_FEW),
    "deploy 1,000 files, 20 ms each, against curl": Promise(1.1, 7.0, note=_FEW),
    "deploy 1,000 files to the sandbox, against curl": Promise(1.3, 7.0, note=_FEW),
    "download 1,000 files, 1 ms each, against curl": Promise(1.8, 4.5, note=_FEW),
    "download 1,000 files, 5 ms each, against curl": Promise(1.25, 4.5, note=_FEW),
    "download 1,000 files, 10 ms each, against curl": Promise(1.15, 4.5, note=_FEW),
    "download 1,000 files, 20 ms each, against curl": Promise(1.1, 4.5, note=_FEW),
    "deploy a file of 2 GiB, against curl": Promise(2.5, 5.5, note=_DIGESTS),
    "download a file of 2 GiB, against curl": Promise(1.5, 3.5),
    "1,000 files, against jf": Promise(1.0, note=_JF),
    "a file of 2 GiB, against jf": Promise(1.0, note=_JF),
    "deploy 1,000 files again, faster than at first": Promise(20.0, at_least=True, note=_WAITING),
    "deploy 50,000 files again": Promise(4.0, 3.0, unit="seconds", note=_ABSOLUTE),
    # repo_state
    "compare 2,000 repositories with their export": Promise(
        10.0, 7.5, unit="seconds", note=_ABSOLUTE
    ),
    # analysis, analysis_search
    "2,200 unchanged objects": Promise(5.0, 2.0, unit="seconds", note=_ABSOLUTE),
    "2,200 unchanged objects, faster than uri": Promise(50.0, 50.0, at_least=True),
    "1,000 changes, faster than uri": Promise(50.0, 50.0, at_least=True),
    "1,000 changes in parallel, the changes alone": Promise(7.0, at_least=True, note=_WAITING),
    "1,000 changes in parallel, the whole task": Promise(5.0, at_least=True, note=_WAITING),
    "keep 100,000 issues, against requests": Promise(2.5, 2.0),
    # ci
    "one build, longer than itself": Promise(1.0, 1.0, unit="seconds", note=_ABSOLUTE),
    "50 builds, faster than jenkins_build": Promise(10.0, 10.0, at_least=True),
    # forks
    "20 forks, faster than one": Promise(1.5, at_least=True, note=_WAITING),
    # tracker, tracker_issue
    "search for 50,000 issues, faster than jira": Promise(2.0, 1.3, at_least=True),
    "50,000 issues into a file, against our client alone": Promise(1.2, 2.0),
    "200 issues in parallel, faster than in sequence": Promise(3.0, at_least=True, note=_WAITING),
    # wiki, wiki_tree
    "100 pages, faster than atlassian-python-api": Promise(3.0, 1.2, at_least=True),
    "100 unchanged pages of a tree": Promise(2.0, 1.0, unit="seconds", note=_ABSOLUTE),
}
