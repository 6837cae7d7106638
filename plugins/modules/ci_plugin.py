#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_plugin
short_description: Install, update, enable, disable and remove plugins of the CI server
version_added: 1.0.0
description:
  - Installs and updates plugins and their dependencies with the plugin manager of the server, and waits until its update center has
    finished. It installs the newest version of the update site.
  - Enables, disables and removes plugins. This takes effect when the server is restarted.
  - The server is never restarted. RV(restart_required) reports whether a restart is required. M(delivery.toolchain.ci_restart) restarts it.
    A plugin that waits for a restart is not installed again.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
options:
  plugins:
    description: Plugins to manage. Set exactly one of O(plugins) and O(lock_file).
    type: list
    elements: dict
    suboptions:
      name:
        description: Short name of the plugin.
        type: str
        required: true
      version:
        description: Minimum version in quotes. By default, any version is accepted.
        type: str
      state:
        description:
          - V(present) installs or updates the plugin and does not enable or disable it. V(enabled) and V(disabled) also set this state.
          - V(absent) removes it. Plugins that depend on a removed or disabled plugin stay installed, but are no longer loaded. A warning
            names them.
        type: str
        choices: [present, absent, enabled, disabled]
        default: present
  lock_file:
    description: Lock file as written by M(delivery.toolchain.ci_plugin_info). Its plugins must have at least these versions.
    type: path
  wait:
    description: Whether to wait until the installations have finished.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for the installation. Then the task fails, and the installation continues on the server.
    type: float
    default: 900
  poll_interval:
    description: Maximum polling interval for the update center in seconds.
    type: float
    default: 2
seealso:
  - module: delivery.toolchain.ci_plugin_info
  - module: delivery.toolchain.ci_restart
"""

EXAMPLES = r"""
- name: Have these plugins
  delivery.toolchain.ci_plugin:
    plugins:
      - name: git
        version: 5.2.0
      - name: timestamper
      - name: ant
        state: enabled
  register: plugins
"""

RETURN = r"""
plugins:
  description: Results of the plugins, then of the dependencies that the server installs with them, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its short name.
      type: str
    before:
      description: Version before the task, or null if the plugin was not installed.
      type: str
    after:
      description: Installed version, or the version after the next start. Null if the plugin is removed.
      type: str
    action:
      description: V(installed), V(updated), V(enabled), V(disabled), V(removed), V(unchanged), or V(failed) if the task failed.
      type: str
    implied:
      description:
        - Whether the task does not name the plugin, and the server installs it as a dependency. Before the task, it is predicted from
          the dependencies that the update site lists, afterwards it is read from the installations.
      type: bool
  sample:
    - {"name": "git", "before": "5.2.2", "after": "5.7.0", "action": "updated", "implied": false}
    - {"name": "timestamper", "before": null, "after": "1.28", "action": "installed", "implied": false}
    - {"name": "plain-credentials", "before": null, "after": "183.va_de8f1dd5a_2b_", "action": "installed", "implied": true}
restart_required:
  description: Whether a change takes effect only after a restart of the server.
  returned: success
  type: bool
  sample: true
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(not_found) if the update site lacks the plugin, V(rejected) if it lacks the version, and V(failed) if an installation
      failed. The message contains the reasons of the server.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.server import ci_plugin


def main() -> None:
    run(ci_plugin.CiPluginOptions, ci_plugin.CiPluginOperation)


if __name__ == "__main__":
    main()
