#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_node
short_description: Create, change, delete a node, take it offline or bring it online
version_added: 1.0.0
description:
  - Manages nodes, also called agents. Only differences are sent.
  - The request that takes a node offline also brings it online. The module reads the state first, and never repeats the request without reading again.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
options:
  entries:
    description: Manages many objects with the other options.
    type: list
    elements: dict
    suboptions: &entry
      name:
        description: Name of the node. V((built-in\)), V(built-in) and V(master) name the built-in node.
        type: str
        required: true
      description:
        description: Description.
        type: str
      executors:
        description: Number of builds that run at the same time. V(1) for a new node.
        type: int
      remote_root:
        description: Folder of the server on the node. Needed for a new node without O(config) or O(src).
        type: str
      labels:
        description: All labels of the node.
        type: list
        elements: str
      mode:
        description: V(exclusive) runs only jobs that name the node or its labels.
        type: str
        choices: [normal, exclusive]
      config:
        description: Complete configuration as XML, for settings without an option, such as the launcher. It can only be combined with
          O(offline) and O(offline_reason).
        type: str
      src:
        description: File with the configuration, instead of O(config). C(ci_export) writes such files.
        type: path
      offline:
        description:
          - Whether the node is offline by hand. Running builds continue. If this option is not set, the state of the node is kept, also if the
            server would bring it online.
          - A node that is merely not connected is not offline in this sense.
        type: bool
      offline_reason:
        description: Reason that users see. Goes with O(offline=true).
        type: str
      force:
        description: Whether O(state=absent) deletes a node that runs builds, which ends them.
        type: bool
        default: false
      wait_timeout:
        description: Seconds that O(state=absent) waits until the node is idle.
        type: float
        default: 300
      state:
        description: V(absent) deletes the node.
        type: str
        choices: [present, absent]
        default: present
  name:
    description: Name of the node. V((built-in\)), V(built-in) and V(master) name the built-in node.
    type: str
  <<: *entry
seealso:
  - module: delivery.toolchain.ci_restart
  - module: delivery.toolchain.ci_job
"""

EXAMPLES = r"""
- name: Create a node
  delivery.toolchain.ci_node:
    name: linux-1
    remote_root: /var/lib/jenkins
    executors: 4
    labels: [linux, docker]

- name: Take a node offline for maintenance
  delivery.toolchain.ci_node:
    name: linux-1
    offline: true
    offline_reason: New kernel

- name: Bring it online, and delete another one as soon as it is idle
  delivery.toolchain.ci_node:
    entries:
      - {name: linux-1, offline: false}
      - {name: linux-0, state: absent}
"""

RETURN = r"""
node:
  description: Node. Null if it is absent. C(offline) is also true if the node is not connected.
  returned: success, without O(entries)
  type: dict
  sample:
    name: linux-1
    offline: true
    temporarily_offline: true
    offline_reason: New kernel
    labels: [docker, linux]
    executors: 4
    idle: true
results:
  description: With O(entries), an item for each entry, with the keys of the single return value, C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: example, action: created, changes: []}]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.server import ci_node


def main() -> None:
    run(ci_node.CiNodeOptions, ci_node.CiNodeOperation)


if __name__ == "__main__":
    main()
