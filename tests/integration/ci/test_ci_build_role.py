# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `ci_build`: sequential jobs stop after a failed job, parallel jobs do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]


def test_jobs_that_run_together_do_not_wait_for_each_other(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    jobs = [{"job": "always-fails"}, {"job": "no-parameters"}]
    role = {
        "name": "Build",
        "ansible.builtin.import_role": {"name": "delivery.toolchain.ci_build"},
        "vars": {"ci_build_jobs": jobs, "ci_build_together": True},
    }
    play = playbook.play([role], module_defaults=connections.module_defaults(sandbox.urls))
    run = playbook.run(tmp_path, [play], controls={"localhost": sandbox.control})
    assert run.code != 0, run.output
    event = run.event("delivery.toolchain.ci_build : Run the jobs at once")
    bad, good = event.result["builds"]
    assert (bad["build"]["result"], bad["ok"], bad["error"]["kind"]) == ("FAILURE", False, "failed")
    assert (good["build"]["result"], good["ok"]) == ("SUCCESS", True)
    assert len(event.writes) == 2


def test_no_job_is_started_after_one_that_ended_badly(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    role = {
        "name": "Build",
        "ansible.builtin.import_role": {"name": "delivery.toolchain.ci_build"},
        "vars": {
            "ci_build_jobs": [
                {"job": "always-fails"},
                {"job": "no-parameters"},
                {"job": "no-parameters"},
            ]
        },
    }
    play = playbook.play([role], module_defaults=connections.module_defaults(sandbox.urls))
    run = playbook.run(tmp_path, [play], controls={"localhost": sandbox.control})
    assert run.code != 0, run.output
    event = run.event("delivery.toolchain.ci_build : Run the jobs one by one")
    item, *others = event.items
    assert [other["skipped"] for other in others] == [True, True]
    assert (item["build"]["result"], item["error"]["kind"]) == ("FAILURE", "failed")
    handed_on = run.event("delivery.toolchain.ci_build : Hand on the results").result
    (result,) = handed_on["ansible_facts"]["ci_build_results"]
    assert (result["job"], result["build"]) == ("always-fails", item["build"])
    assert [write["path"] for write in event.writes] == ["/job/always-fails/build"]
