# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drift_reports
short_description: Read the reports of several runs as one
version_added: 1.0.0
description:
  - Reads the reports that the callback P(delivery.toolchain.report#callback) wrote in several runs, and returns their content as one
    report. The playbook C(delivery.toolchain.drift_summary) uses it.
  - A report that is missing, unreadable, of another format or too old gives a finding with C(status) V(failed).
  - A relative path starts in the folder of the playbook, for a playbook of this collection in the working directory.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description:
      - A folder with report folders, or a list of report folders.
      - A list item can also be a file C(report.json).
    type: list
    elements: raw
    required: true
  folder:
    description: The folder of the summary, which is never read as a report.
    type: path
    required: true
  expected:
    description: Names of hosts that must be in the reports.
    type: list
    elements: str
    default: []
  max_age:
    description: Maximum age of a report since its end, such as V(2d), V(26h) or V(30m).
    type: str
"""

EXAMPLES = r"""
- name: Show the findings of all runs
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.drift_reports', 'reports', folder='summary').findings | map(attribute='text') }}"
"""

RETURN = r"""
_raw:
  description:
    - A dictionary with C(folder), the absolute path of the summary, C(check), C(hosts), C(findings), and C(unchanged), the number of
      unchanged objects per server.
  type: list
  elements: dict
"""

from datetime import datetime, timezone
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from ansible_collections.delivery.toolchain.plugins.module_utils.core.times import age_of
from ansible_collections.delivery.toolchain.plugins.plugin_utils import lookups
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import summary, writing


class LookupModule(LookupBase):
    def run(
        self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "a folder with reports")
        try:
            return [self._read(term, variables or {}) for term in terms]
        except (summary.SummaryError, ToolchainError) as error:
            failure = AnsibleError(f"Cannot summarise the reports: {error}.")
        raise failure

    def _read(self, term: Any, variables: dict[str, Any]) -> dict[str, Any]:
        folder = writing.resolved(self.get_option("folder"), variables)
        listed = isinstance(term, list)
        given = [writing.resolved(str(path), variables) for path in (term if listed else [term])]
        places = summary.report_paths(given if listed else given[0], folder)
        limit = self.get_option("max_age") or None
        age = None if limit is None else age_of("summary_max_age", limit)
        expected = self.get_option("expected")
        found = summary.read(places, expected, age, datetime.now(timezone.utc))
        return {"folder": str(folder), **found}
