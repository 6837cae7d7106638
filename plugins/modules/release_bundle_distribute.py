#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release_bundle_distribute
short_description: Distribute a release bundle to sites
version_added: 1.0.0
description:
  - Distributes a version of a release bundle (version 2) to sites, or deletes it there.
  - The task is unchanged if completed distributions reached all wanted sites, and no later deletion removed the version there.
  - The server does not list its sites, so they are known from earlier distributions of this version only. A rule that matches several
    sites is met in two cases. Either an earlier distribution had the same or a wider rule. Or the server does not show rules, and all known
    sites have the version.
  - If a distribution is still running, also by someone else, the task waits and is unchanged.
  - Distribution needs a licence of Enterprise+.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.release_bundle
  - delivery.toolchain.attributes
options:
  rules:
    description: Sites to distribute to. A site must match all parts of a rule. The default are all sites.
    type: list
    elements: dict
    suboptions:
      site:
        description: Name of the site, or a pattern. The default matches every site.
        type: str
      city:
        description: Name of the city, or a pattern. The default matches every city.
        type: str
      countries:
        description: Codes of the countries. The default matches every country.
        type: list
        elements: str
  create_repositories:
    description: Whether the sites create missing repositories.
    type: bool
    default: false
  mappings:
    description: Where the sites store the files, if not at the same path.
    type: list
    elements: dict
    suboptions:
      input:
        description: Regular expression for a path.
        type: str
        required: true
      output:
        description: Path on the sites, with references such as V($1).
        type: str
        required: true
  state:
    description:
      - V(present) distributes the version, V(absent) deletes it on the sites.
      - A version that was never distributed is unchanged with V(absent).
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: delivery.toolchain.release_bundle
  - module: delivery.toolchain.release_bundle_info
"""

EXAMPLES = r"""
- name: Distribute a release bundle to all sites
  delivery.toolchain.release_bundle_distribute:
    name: agent
    version: 1.10.1
    create_repositories: true

- name: Delete a release bundle on one site
  delivery.toolchain.release_bundle_distribute:
    name: agent
    version: 1.10.1
    rules:
      - site: edge-1
    state: absent
"""

RETURN = r"""
distribution:
  description: The distribution or deletion. The values are null if there is none, and in check mode.
  returned: success
  type: dict
  contains:
    id:
      description: Identity of its tracker on the server.
      type: str
    status:
      description: Status of the server, in capitals.
      type: str
    sites:
      description: Sites as C(name), C(status) and C(error).
      type: list
      elements: dict
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.bundles import release_bundle_distribute


def main() -> None:
    run(
        release_bundle_distribute.ReleaseBundleDistributeOptions,
        release_bundle_distribute.ReleaseBundleDistributeOperation,
    )


if __name__ == "__main__":
    main()
