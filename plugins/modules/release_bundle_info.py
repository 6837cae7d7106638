#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release_bundle_info
short_description: Read release bundles
version_added: 1.0.0
description:
  - Reads a version of a release bundle (version 2) with its promotions, all versions of a name, or the newest version of each name.
  - A name or version that does not exist is an error (V(not_found)).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.release_bundle.info
  - delivery.toolchain.attributes.info
options:
  name:
    description: Name of the release bundle. By default, the newest version of each release bundle is returned.
    type: str
  version:
    description: Version of the release bundle. By default, all versions are returned. Requires O(name).
    type: str
seealso:
  - module: delivery.toolchain.release_bundle
  - module: delivery.toolchain.release_bundle_promote
"""

EXAMPLES = r"""
- name: Read the promotions of a release bundle
  delivery.toolchain.release_bundle_info:
    name: agent
    version: 1.10.1

- name: List the versions of a release bundle
  delivery.toolchain.release_bundle_info:
    name: agent
"""

RETURN = r"""
bundles:
  description:
    - Release bundles as C(name), C(version), C(project), C(repository_key), C(status), C(created) and C(created_by).
    - With O(version), the only entry also has C(artifacts) (their number), C(messages) and C(promotions), newest first. Without O(name), each
      entry has the number of its C(versions).
  returned: success
  type: list
  elements: dict
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.bundles import release_bundle_info


def main() -> None:
    run(
        release_bundle_info.ReleaseBundleInfoOptions, release_bundle_info.ReleaseBundleInfoOperation
    )


if __name__ == "__main__":
    main()
