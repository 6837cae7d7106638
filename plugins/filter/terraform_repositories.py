# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: terraform_repositories
short_description: Convert repositories of the Terraform provider to a desired state
version_added: 1.0.0
description:
  - Converts the repositories in the output of C(terraform show -json) to the content of C(repo.yml), which the role C(desired_state) reads.
    The names are those of the provider C(jfrog/artifactory), version 12.
  - Resources of modules are included. Data sources and resources that are not repositories are left out.
  - Passwords are not copied. Each becomes a reference to a variable C(repo_password_KEY), in which other characters than letters, digits
    and underscores are underscores. Write-only passwords are not in the output of Terraform.
  - The attribute C(custom_http_headers) is left out with a warning, because the values of headers may be secret.
author: delivery.toolchain contributors (@delivery-toolchain)
positional: _input
options:
  _input:
    description: Output of C(terraform show -json), of a state or of a plan, as a mapping.
    type: dict
    required: true
  ignore:
    description:
      - Attributes to leave out. An attribute that the filter does not know is an error, so that none is lost silently.
    type: list
    elements: str
    default: []
seealso:
  - module: delivery.toolchain.repo_repository
"""

EXAMPLES = r"""
- name: Write the repositories of a Terraform state as a desired state
  ansible.builtin.copy:
    content: "{{ state | delivery.toolchain.terraform_repositories | to_nice_yaml }}"
    dest: repo.yml
    mode: "0644"
  vars:
    state:  # lookup('ansible.builtin.pipe', 'terraform show -json') | from_json
      values:
        root_module:
          resources:
            - address: artifactory_local_npm_repository.npm
              type: artifactory_local_npm_repository
              values: {key: npm-local, xray_index: true}
"""

RETURN = r"""
_value:
  description: Content of C(repo.yml), a mapping with the list C(repositories).
  type: dict
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ..module_utils._lib.core.errors import ToolchainError
from ..module_utils._lib.repo.configuration import terraform


def terraform_repositories(document: Any, ignore: Collection[str] = ()) -> dict[str, Any]:
    """Convert the output of `terraform show -json`; see the documentation of the filter."""
    if not isinstance(document, Mapping):
        raise AnsibleFilterError(
            "terraform_repositories expects the output of `terraform show -json` as a mapping:"
            " parse it with from_json"
        )
    if isinstance(ignore, str):
        raise AnsibleFilterError("terraform_repositories: ignore must be a list of attributes")
    try:
        return {"repositories": terraform.repositories_of(document, ignore, Display().warning)}
    except ToolchainError as error:
        raise AnsibleFilterError(f"terraform_repositories: {error.message}") from None


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"terraform_repositories": terraform_repositories}
