# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: findings
short_description: What differs, from the result of a module
version_added: 1.0.0
description:
  - Reads the result of a module, as a task registers it, and lists the objects that differ, in one wording for all services.
  - The result of a task that was skipped has none.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input, module
options:
  _input:
    description: The result. What it does not tell itself (the name of a script or a build) has to be in it.
    type: dict
    required: true
  module:
    description: The module that it is the result of. V(ci_java) stands for a mapping with C(java), C(release) and C(supported).
    type: str
    choices:
      - analysis_config
      - artifact_cleanup
      - artifact_trash
      - build_retention
      - ci_java
      - ci_job
      - ci_plugin
      - ci_plugin_info
      - ci_script
      - tracker_version
      - wiki_page
      - wiki_tree
    required: true
"""

EXAMPLES = r"""
- name: Hold the plugins of the CI server against a list
  delivery.toolchain.ci_plugin_info:
    required:
      - name: git
  register: plugins

- name: Show what differs
  ansible.builtin.debug:
    msg: "{{ plugins | delivery.toolchain.findings('ci_plugin_info') | map(attribute='text') }}"
"""

RETURN = r"""
_value:
  description:
    - The objects that differ, each with C(service), C(kind), C(name), C(action) (V(create), V(update) or V(delete)), C(text),
      C(before), C(after) and C(status), which is V(drift), or V(failed) for an object that could not be written.
    - Of the items of a cleanup the first 1,000 are told one by one; one more entry has the number of the rest.
  type: list
  elements: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.delivery.toolchain.plugins.plugin_utils.findings import (
    READERS,
    Finding,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import objects

_MODULES = (*READERS, "ci_job", "tracker_version", "wiki_page", "wiki_tree")


def findings(result: Any, module: Any) -> list[Finding]:
    """The findings in the result of a module; see the documentation of the filter."""
    if not isinstance(result, Mapping):
        raise AnsibleFilterError("findings takes the result of a module, which is a mapping")
    if module not in _MODULES:
        known = ", ".join(_MODULES)
        raise AnsibleFilterError(f"findings: module is one of {known}, not {module!r}")
    return objects.differing(str(module), result)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"findings": findings}
