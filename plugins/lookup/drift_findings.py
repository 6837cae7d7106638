# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drift_findings
short_description: Return the findings of the run so far, compared with the last run
version_added: 1.0.0
description:
  - Returns the findings that the callback P(delivery.toolchain.report#callback) would report now. Each has C(id), C(first_seen) and
    C(since), and findings that the variable C(drift_ignore) accepts have the status V(ignored).
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description: Findings to return if the run is not reported, because this ansible-core is not known to the callback.
    type: list
    elements: raw
    required: true
"""

EXAMPLES = r"""
- name: Show what is new
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.drift_findings', []).findings | selectattr('since', 'equalto', 'new') }}"
"""

RETURN = r"""
_raw:
  description:
    - A dictionary with C(findings), C(mended), and C(result), which is V(as wanted), V(differs), V(unmanaged), V(changed) or
      V(failed).
  type: list
  elements: dict
"""

from typing import Any

from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import lookups
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import switch
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import result_of


class LookupModule(LookupBase):
    def run(
        self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "the findings of the hosts")
        return [_found(term) for term in terms]


def _found(known: list[dict[str, Any]]) -> dict[str, Any]:
    contents = switch.so_far()
    if contents is not None:
        # without the changes of earlier plays of the same run
        identities = {_identity(record) for record in known}
        return {
            "findings": [
                finding
                for finding in contents.findings
                if finding["status"] == "failed" or _identity(finding) in identities
            ],
            "mended": contents.mended,
            "result": contents.result(),
        }
    return {"findings": known, "mended": [], "result": result_of(known)}


def _identity(finding: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(finding.get(name) for name in ("host", "service", "kind", "name"))
