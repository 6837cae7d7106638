# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: findings
short_description: List differences from the result of a module
version_added: 1.0.0
description:
  - Reads the registered result of a module, and lists the objects that differ, in the same format for all services.
  - The result of a skipped task has no differences.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input, module
options:
  _input:
    description: Result of the module. Data that is not part of the result, such as the name of a script or a build, must be added.
    type: dict
    required: true
  module:
    description: Module that returned the result. V(ci_java) is a mapping with C(java), C(release) and C(supported).
    type: str
    choices:
      - analysis_config
      - artifact_cleanup
      - artifact_trash
      - build_retention
      - ci_configuration
      - ci_credential
      - ci_java
      - ci_job
      - ci_node
      - ci_plugin
      - ci_plugin_info
      - ci_script
      - ci_view
      - repo_group
      - repo_permission
      - repo_repository
      - repo_user
      - tracker_component
      - tracker_project_role
      - tracker_version
      - wiki_page
      - wiki_restriction
      - wiki_space
      - wiki_tree
    required: true
"""

EXAMPLES = r"""
- name: Hold the plugins of the CI server against a list
  delivery.toolchain.ci_plugin_info:
    required:
      - name: git
  register: plugins

- name: Show the differences
  ansible.builtin.debug:
    msg: "{{ plugins | delivery.toolchain.findings('ci_plugin_info') | map(attribute='text') }}"
"""

RETURN = r"""
_value:
  description:
    - Objects that differ, with C(service), C(kind), C(name), C(action) (V(create), V(update) or V(delete)), C(text), C(before), C(after)
      and C(status), which is V(drift), or V(failed) for an object that could not be written.
    - The first 1,000 items of a cleanup are listed separately. A last entry contains the number of the remaining items.
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

_MODULES = (
    *READERS,
    "ci_configuration",
    "ci_credential",
    "ci_job",
    "ci_node",
    "ci_view",
    "repo_group",
    "repo_permission",
    "repo_repository",
    "repo_user",
    "tracker_version",
    "tracker_component",
    "tracker_project_role",
    "wiki_page",
    "wiki_restriction",
    "wiki_space",
    "wiki_tree",
)


def findings(result: Any, module: Any) -> list[Finding]:
    """List the findings in the result of a module; see the documentation of the filter."""
    if not isinstance(result, Mapping):
        raise AnsibleFilterError("findings expects the result of a module, which is a mapping")
    if module not in _MODULES:
        known = ", ".join(_MODULES)
        raise AnsibleFilterError(f"findings: module must be one of {known}, not {module!r}")
    return objects.differing(str(module), result)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"findings": findings}
