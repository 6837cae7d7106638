# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ci_build_parameters
short_description: Parameters of a build of the CI server
version_added: 1.0.0
description: Returns the parameters of a build as a dictionary, for every given job.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci_plugin
  - delivery.toolchain.lookup_cache
options:
  _terms:
    description: Jobs as C(folder/job), as a list of names (a name per level), or as the URL on the server.
    type: list
    elements: raw
    required: true
  build:
    description: Number of the build, or a permalink.
    type: str
    default: lastBuild
seealso:
  - module: delivery.toolchain.ci_job_info
"""

EXAMPLES = r"""
- name: Show which version was built last with success
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.ci_build_parameters', 'long-history', build='lastSuccessfulBuild').VERSION }}"
"""

RETURN = r"""
_list:
  description:
    - A dictionary per job with the parameter names and values as shown by the server. Passwords are masked.
    - Values that the server does not show are null.
  type: list
  elements: dict
"""

from typing import Any

from ..module_utils._lib.ci.jobs import ci_job_info
from ..plugin_utils._lib import lookups


class LookupModule(lookups.QueryLookup):
    service, wanted, has_strings = "ci", "a job", False

    def rows(self, term: Any) -> list[Any]:
        options = ci_job_info.BuildParametersOptions(job=term, build=self.get_option("build"))
        return self.ask({"job": term}, lambda task: [ci_job_info.build_parameters(task, options)])
