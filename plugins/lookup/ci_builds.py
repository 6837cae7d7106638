# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ci_builds
short_description: Builds of jobs of the CI server
version_added: 1.0.0
description:
  - Returns the builds of all given jobs, in the order of the jobs. Builds of a job are sorted newest first.
  - Use C(query) to always get a list, even of a single build.
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
  fields:
    description: Fields of a build to read, in the tree syntax of the server. The server ignores unknown fields.
    type: list
    elements: str
    default: [number, result, building, timestamp, duration, queueId, displayName, url]
  limit:
    description: Maximum number of newest builds per job.
    type: int
  all_builds:
    description: Whether to read all builds. By default, the server lists only the newest 100.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.ci_job_info
"""

EXAMPLES = r"""
- name: Show the results of the newest five builds
  ansible.builtin.debug:
    msg: "{{ builds | map(attribute='result') }}"
  vars:
    builds: "{{ query('delivery.toolchain.ci_builds', 'long-history', limit=5) }}"
"""

RETURN = r"""
_list:
  description: Builds with the field names of the server.
  type: list
  elements: dict
"""

from typing import Any

from ..module_utils._lib.ci.jobs import ci_job_info
from ..module_utils._lib.core.module import typed_options
from ..plugin_utils._lib import lookups


class LookupModule(lookups.QueryLookup):
    service, wanted, has_strings = "ci", "a job", False

    def rows(self, term: Any) -> list[Any]:
        kind = ci_job_info.BuildListOptions
        names = typed_options.argument_spec(kind).keys() - {"job"}
        values = {name: self.get_option(name) for name in names}
        options = lookups.parsed(kind, {**values, "job": term})
        return self.ask({"job": term}, lambda task: ci_job_info.build_list(task, options))
