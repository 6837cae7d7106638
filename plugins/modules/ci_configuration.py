#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_configuration
short_description: Configure the CI server as code, with a plan
version_added: 1.0.0
description:
  - Compares a configuration for the plugin C(configuration-as-code) with the export of the server, path by path. Paths that the
    configuration does not name are not managed, and keep their values.
  - Only sections that differ are sent, such as C(jenkins.systemMessage) or C(unclassified.location). The server checks them first, in check mode
    too. Afterwards the same paths are compared again.
  - The server replaces whole lists. If a list would lose entries, the task fails, unless O(replaces) names the list.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
options:
  config:
    description: The configuration, as a mapping or as YAML.
    type: raw
  src:
    description: File with the configuration, in YAML.
    type: path
  replaces:
    description: Lists that may lose entries, by their paths without the names of entries, such as C(jenkins.nodes).
    type: list
    elements: str
    default: []
  max_deletions:
    description: How many entries all lists may lose together.
    type: int
    default: 0
notes:
  - The server does not show secrets, and replaces variables such as C(${NAME}) itself. Both cannot be compared. RV(unknown) lists them. They
    are sent when another part of their section differs.
  - No export shows the sections C(jobs), C(items), C(groovy) and C(configuration-as-code). RV(unknown) lists them. They are sent, and the
    server carries them out, when another section differs.
  - Exports leave out defaults. An option that the export lacks is sent. If the export is the same afterwards, the task is unchanged and warns,
    and RV(unknown) lists the option.
  - A server with its own configuration files merges them with what the task sends. A value that both have is C(rejected), and lists are joined,
    unless the server was started with C(CASC_MERGE_STRATEGY=override).
  - The list C(credentials) of the server has all its credentials, with secrets. M(delivery.toolchain.ci_credential) manages single ones.
  - PyYAML is needed on the host where the task runs.
seealso:
  - module: delivery.toolchain.ci_credential
  - module: delivery.toolchain.ci_node
"""

EXAMPLES = r"""
- name: Set the message and the address of the server
  delivery.toolchain.ci_configuration:
    config:
      jenkins:
        systemMessage: Releases only
      unclassified:
        location:
          url: https://ci.example.org/

- name: Describe all nodes, and remove at most one
  delivery.toolchain.ci_configuration:
    config:
      jenkins:
        nodes:
          - permanent: {name: linux-1, remoteFS: /srv, labelString: linux docker}
    replaces: [jenkins.nodes]
    max_deletions: 1
"""

RETURN = r"""
changes:
  description: Paths that differ, without secrets.
  returned: success
  type: list
  elements: dict
  sample: [{path: jenkins.systemMessage, before: Delivery, after: Releases only}]
configuration:
  description: The configuration, with its C(name) in reports, which consists of the names of its sections.
  returned: success
  type: dict
  sample: {name: "jenkins, unclassified"}
unknown:
  description:
    - Paths that cannot be compared, as secrets, and parts that the server could not export.
    - After a write, also paths that the server did not store, or that have their default value.
  returned: success
  type: list
  elements: str
  sample: [unclassified.mailer.authentication.password]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.server import ci_configuration


def main() -> None:
    run(ci_configuration.CiConfigurationOptions, ci_configuration.CiConfigurationOperation)


if __name__ == "__main__":
    main()
