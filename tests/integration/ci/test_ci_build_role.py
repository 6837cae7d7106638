# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `ci_build` in playbooks: sequential jobs stop after a failed job, parallel jobs do
not; and what the output of a playbook shows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]


def test_parallel_jobs_do_not_wait_for_each_other(fresh: Fresh, tmp_path: Path) -> None:
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


def test_no_job_is_started_after_an_unsuccessful_one(fresh: Fresh, tmp_path: Path) -> None:
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
    handed_on = run.event("delivery.toolchain.ci_build : Return results").result
    (result,) = handed_on["ansible_facts"]["ci_build_results"]
    assert (result["job"], result["build"]) == ("always-fails", item["build"])
    assert [write["path"] for write in event.writes] == ["/job/always-fails/build"]


@pytest.mark.parametrize("together", [False, True])
def test_builds_are_started_first_and_awaited_later(
    fresh: Fresh, tmp_path: Path, together: bool
) -> None:
    sandbox = fresh("real")
    jobs = ["no-parameters", "always-fails"]
    start = {
        "name": "Start",
        "ansible.builtin.include_role": {"name": "delivery.toolchain.ci_build"},
        "vars": {
            "ci_build_jobs": [{"job": "{{ item }}"}],
            "ci_build_wait": False,
            "ci_build_together": together,
        },
        "loop": jobs,
    }
    wait = {
        "name": "Wait",
        "ansible.builtin.include_role": {"name": "delivery.toolchain.ci_build"},
        "vars": {
            "ci_build_key": "waited",
            "ci_build_together": together,
            "ci_build_jobs": [
                {"job": job, "state": "finished", "queue_id": _queue_id(job)} for job in jobs
            ],
        },
    }
    play = playbook.play([start, wait], module_defaults=connections.module_defaults(sandbox.urls))
    run = playbook.run(tmp_path, [play], controls={"localhost": sandbox.control})
    assert run.code != 0, run.output
    kept = [event for event in run.events if event.task.endswith(": Keep the results of each call")]
    found = kept[-1].result["ansible_facts"]["ci_build_results_by_key"]
    assert list(found) == [*jobs, "waited"]
    assert [found[job][0]["build"]["result"] for job in jobs] == [None, None]
    assert [each["build"]["result"] for each in found["waited"]] == ["SUCCESS", "FAILURE"]
    assert len([write for event in run.events for write in event.writes]) == 2
    assert "ended with FAILURE" in run.output


def _queue_id(job: str) -> str:
    return f"{{{{ ci_build_results_by_key['{job}'][0].queue_id }}}}"


def test_check_mode_does_not_wait_for_predicted_builds(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    start = {
        "name": "Start",
        "delivery.toolchain.ci_job_build": {"job": "no-parameters", "wait": False},
        "register": "started",
    }
    wait = {
        "name": "Wait",
        "delivery.toolchain.ci_job_build": {
            "job": "no-parameters",
            "state": "finished",
            "queue_id": "{{ started.queue_id | default(omit, true) }}",
        },
    }
    play = playbook.play([start, wait], module_defaults=connections.module_defaults(sandbox.urls))
    controls = {"localhost": sandbox.control}
    rehearsed = playbook.run(tmp_path, [play], arguments=["--check"], controls=controls)
    assert rehearsed.code == 0, rehearsed.output
    assert [rehearsed.event(name).result["changed"] for name in ("Start", "Wait")] == [True, False]
    run = playbook.run(tmp_path, [play], controls=controls)
    assert run.code == 0, run.output
    assert run.event("Wait").result["build"]["result"] == "SUCCESS"
    assert len(run.event("Start").writes + run.event("Wait").writes) == 1


@pytest.mark.parametrize("arguments", [[], ["--diff"]])
def test_compared_configuration_is_shown_as_diff(
    fresh: Fresh, tmp_path: Path, arguments: list[str]
) -> None:
    sandbox = fresh("real")
    task = {
        "name": "Compare",
        "delivery.toolchain.ci_job_info": {
            "job": "no-parameters",
            "expected_config": "<project><description>Another</description></project>",
        },
        "register": "compared",
    }
    play = playbook.play([task], module_defaults=connections.module_defaults(sandbox.urls))
    controls = {"localhost": sandbox.control}
    run = playbook.run(tmp_path, [play], arguments=arguments, controls=controls)
    result = run.event("Compare").result
    assert (run.code, result["changed"], result["config_drift"]) == (0, False, True)
    shown = "+  <description>Another</description>" in run.output
    assert shown is bool(arguments), run.output


def test_loop_variable_that_hides_a_return_value_is_reported(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    task = {
        "name": "Read",
        "delivery.toolchain.ci_job_info": {"job": "{{ job }}"},
        "loop": ["no-parameters"],
        "loop_control": {"loop_var": "job"},
    }
    play = playbook.play([task], module_defaults=connections.module_defaults(sandbox.urls))
    run = playbook.run(tmp_path, [play], controls={"localhost": sandbox.control})
    assert run.code == 0, run.output
    message = "loop_var is 'job', which replaces the return value 'job' in the result of the loop"
    assert message in " ".join(run.output.split())
