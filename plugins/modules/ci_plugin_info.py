#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_plugin_info
short_description: Read the plugins of the CI server, and compare them with a baseline
version_added: 1.0.0
description:
  - Lists the installed plugins, and reports required plugins that are missing, outdated, disabled or not loaded.
  - Versions are compared with the rules of the server, so V(1.2-beta) is older than V(1.2).
  - The baseline is O(required), or a lock file that this module wrote from a reference server. The lock file has the C(plugins.txt) format
    of the plugin installation manager of the server.
  - The server is not changed. The lock file is written on the host of the task if requested.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
  - delivery.toolchain.ci_ssh
options:
  required:
    description:
      - Required plugins, as a list of dictionaries with C(name), C(version) and C(state), or as a dictionary of names and versions.
      - C(state) is V(present) or V(enabled) for a required plugin, and V(absent) or V(disabled) for a plugin that must not be active.
      - Newer versions are accepted. Without a version, and with V(latest), every version is accepted.
      - Quote versions, because YAML reads 1.10 without quotes as the number 1.1.
    type: raw
  lock_file:
    description: Lock file with a line C(name:version) per plugin.
    type: path
  lock:
    description:
      - V(write) writes O(lock_file) from the plugins of the server. The task reports a change if its content differs.
      - V(check) uses O(lock_file) as the required plugins, and reports plugins that are newer on the server or not in the file.
    type: str
    choices: [write, check]
notes:
  - The account needs the permission to read the system configuration, and over SSH the permission to administer the server.
  - Over SSH, the server does not report disabled plugins or plugins that are not loaded. If plugins are required, the task adds a warning.
seealso:
  - module: delivery.toolchain.ci_restart
  - module: delivery.toolchain.ci_script
"""

EXAMPLES = r"""
- name: Fail unless the plugins are as required
  delivery.toolchain.ci_plugin_info:
    required:
      git: "5.0.0"
      workflow-aggregator: "600.vb_57cdd26fdd7"
  register: plugins
  failed_when: plugins is failed or not plugins.compliant

- name: Write a lock file from a server that is as it should be
  delivery.toolchain.ci_plugin_info:
    lock_file: plugins.txt
    lock: write

- name: Hold the server against it later
  delivery.toolchain.ci_plugin_info:
    lock_file: plugins.txt
    lock: check
  register: drift
"""

RETURN = r"""
plugins:
  description:
    - Installed plugins, sorted by name.
    - C(enabled) and C(active) are null if the server does not report them.
  returned: success
  type: list
  elements: dict
  sample: [{short_name: git, long_name: Git plugin, version: 5.2.2, enabled: true, active: true, has_update: false}]
missing:
  description: Names of required plugins that are not installed.
  returned: success
  type: list
  elements: str
  sample: [matrix-auth]
outdated:
  description: Plugins that are older than required.
  returned: success
  type: list
  elements: dict
  sample: [{name: git, installed: 5.2.2, required: 5.3.0}]
inactive:
  description: Names of required plugins that are installed, but disabled or not loaded.
  returned: success
  type: list
  elements: str
  sample: [ant]
unwanted:
  description: Plugins that should be V(absent) or V(disabled), but are not.
  returned: success
  type: list
  elements: dict
  sample: [{name: greenballs, installed: "1.15", state: absent}]
compliant:
  description: Whether RV(missing), RV(outdated), RV(inactive) and RV(unwanted) are all empty.
  returned: success
  type: bool
  sample: true
extra:
  description: Names of plugins that are not in the lock file. Empty unless O(lock=check).
  returned: success
  type: list
  elements: str
  sample: [greenballs]
newer:
  description: Plugins that are newer than in the lock file. Empty unless O(lock=check).
  returned: success
  type: list
  elements: dict
  sample: [{name: git, installed: 5.2.2, required: 5.2.0}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.server import ci_plugin_info


def main() -> None:
    run(ci_plugin_info.CiPluginInfoOptions, ci_plugin_info.CiPluginInfoOperation)


if __name__ == "__main__":
    main()
