# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: run_slices
short_description: Run the playbook drift or enforce in slices, on several workers
version_added: 1.0.0
description:
  - The playbooks C(delivery.toolchain.drift) and C(delivery.toolchain.enforce) use it where C(drift_slices) or C(drift_workers) is set.
  - Deals hosts, their services and projects out to slices, sends each to a worker with C(ansible-runner transmit | worker | process), and
    gives back all objects that the slices compared.
  - A slice that does not come back is run once more, by another worker where there is one; then it is an object that failed.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description:
      - One mapping of hosts, each with C(roles), the roles to run, and C(variables), what they take; or with the text that V(sent) of
        P(delivery.toolchain.enforcement#lookup) gives.
    type: list
    elements: dict
    required: true
  playbook:
    description: The playbook.
    type: str
    choices: [drift, enforce]
    default: drift
  slices:
    description: The number of slices; as many as there are workers where it is not given.
    type: raw
  workers:
    description:
      - The workers, as a list or with commas. Each is V(local), V(ssh:HOST) or V(receptor:NODE); what is named twice runs two slices at a
        time.
      - Not given, they are as many V(local) as the machine has processors.
    type: raw
"""

EXAMPLES = r"""
- name: Compare the plugins of a CI server in a process of its own
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.run_slices', wanted, workers='local') }}"
  vars:
    wanted:
      builder:
        roles: [ci_baseline]
        variables:
          ci_baseline_plugins: [{name: git}]
          ci_baseline_check_java: false
"""

RETURN = r"""
_raw:
  description: The objects that were compared, with the keys of a finding; C(status) is V(ok) for those that are as wanted.
  type: list
  elements: dict
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.plugin_utils import enforcement
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices import merging
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.packing import Slice
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.running import (
    Runner,
    SlicedRun,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.units import (
    Description,
    deal,
    is_sent,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.workers import (
    SlicesError,
    settings,
)

_OURS = Path(__file__).resolve().parents[2] / "playbooks"
_display = Display()


class LookupModule(LookupBase):
    def run(
        self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[list[dict[str, Any]]]:
        self.set_options(var_options=variables, direct=kwargs)
        try:
            return [self._run(term, variables or {}) for term in terms]
        except SlicesError as error:
            message = str(error)
        raise AnsibleError(message)

    def _run(
        self, described: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        count, workers = settings(self.get_option("slices"), self.get_option("workers"))
        wanted = {str(host): _description(one) for host, one in described.items()}
        dealt = deal((unit for host, one in wanted.items() for unit in one.units(host)), count)
        parts = [Slice(number, len(dealt), units) for number, units in enumerate(dealt, 1)]
        playbook = self.get_option("playbook")
        check = playbook == "drift" or bool(variables.get("ansible_check_mode"))
        modes = {"--check": check, "--diff": bool(variables.get("ansible_diff_mode"))}
        forks = ["--forks", str(int(variables.get("ansible_forks") or 5))]
        arguments = [*(name for name, chosen in modes.items() if chosen), *forks]
        playbooks = Path(str(variables.get("playbook_dir", "."))).resolve()
        start = Path.cwd() if playbooks == _OURS else playbooks
        job = SlicedRun(playbook, wanted, arguments, not check, start)
        outcomes = Runner(job, workers, _display.display).run(parts)
        for text in merging.warnings(outcomes):
            _display.warning(text)
        return merging.objects(outcomes)


def _description(given: Mapping[str, Any] | str) -> Description:
    one = enforcement.unpacked(given) if isinstance(given, str) else given
    variables = {name: value for name, value in one["variables"].items() if is_sent(name)}
    return Description(list(one["roles"]), variables)
