# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ci_build_results
short_description: List the results of builds from a loop of ci_job_build
version_added: 1.0.0
description:
  - Reads the results that a loop of M(delivery.toolchain.ci_job_build) registers, and lists them in the format of
    O(delivery.toolchain.ci_job_build#module:builds).
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input, jobs
options:
  _input:
    description: Results of the loop.
    type: list
    elements: dict
    required: true
  jobs:
    description: Jobs, in the order of the results.
    type: list
    elements: raw
    required: true
"""

EXAMPLES = r"""
- name: Build jobs in sequence
  delivery.toolchain.ci_job_build:
    job: "{{ item }}"
    wait: false
  loop: [no-parameters]
  register: runs

- name: Show the numbers in the queue
  ansible.builtin.debug:
    msg: "{{ runs.results | delivery.toolchain.ci_build_results(['no-parameters']) | map(attribute='queue_id') }}"
"""

RETURN = r"""
_value:
  description: Dictionaries with C(job), C(build), C(queue_id) (null if there is no queue item) and C(joined), in the order of the results.
  type: list
  elements: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def ci_build_results(results: Any, jobs: Any) -> list[dict[str, Any]]:
    """List the results of builds; see the documentation of the filter.

    Jobs after a failed job are skipped.
    """
    if not isinstance(results, list) or not isinstance(jobs, list):
        raise AnsibleFilterError(
            "ci_build_results expects the results of a loop and the jobs of that loop"
        )
    return [
        {
            "job": job,
            "build": result.get("build"),
            "queue_id": result.get("queue_id"),
            "joined": result.get("joined", False),
        }
        for job, result in zip(jobs, results, strict=False)
        if not result.get("skipped")
    ]


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"ci_build_results": ci_build_results}
