#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_trash_info
short_description: List the trash of the artifact repository manager
version_added: 1.0.0
description:
  - Lists the repositories with deleted items in the trash. Servers do not list the items themselves.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
options: {}
seealso:
  - module: delivery.toolchain.artifact_trash
"""

EXAMPLES = r"""
- name: List the trash
  delivery.toolchain.artifact_trash_info:
  register: trash
"""

RETURN = r"""
children:
  description: Keys of the repositories with items in the trash.
  returned: success
  type: list
  elements: str
  sample: [generic-snapshot-local]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.cleanup import artifact_trash_info


def main() -> None:
    run(
        artifact_trash_info.ArtifactTrashInfoOptions, artifact_trash_info.ArtifactTrashInfoOperation
    )


if __name__ == "__main__":
    main()
