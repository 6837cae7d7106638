#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: build_retention
short_description: Discard old build records by count and age
version_added: 1.0.0
description:
  - Discards builds beyond O(count) or older than O(max_age) or O(minimum_build_date), except the builds in O(keep).
  - The task selects the builds from the list of builds, with the clock of the server, and shows them as diff, in check mode too. If there
    are none, nothing is written.
  - The server never discards a promoted build. RV(promoted) lists such builds instead of RV(discarded).
  - After a synchronous run, the list is verified, and RV(discarded) contains the builds that were discarded. If no expected build was
    discarded, the task fails. If only some were discarded, a warning names the others.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  build_name:
    description: Name of the builds. A name without builds is an error, unless O(missing_ok) is set.
    type: str
    required: true
  project:
    description: Key of the project (JFrog Projects) that has the build. By default, the builds outside projects are used.
    type: str
  count:
    description: Number of builds to keep, newest first, at least 1. Builds that are kept for another reason are counted too.
    type: int
  max_age:
    description:
      - Discard builds older than this age. A number with C(w) (weeks), C(d) (days), C(h) (hours) or C(m) (minutes), such as V(90d).
      - The age is computed with the clock of the server.
    type: str
  minimum_build_date:
    description: Discard builds older than this time. A date or time in ISO 8601 (UTC if it has no time zone), or epoch milliseconds.
    type: str
  keep:
    description:
      - Numbers of builds to keep, whatever their age.
      - If builds would be discarded and a number in this list does not exist, the task fails before it discards any build.
    type: list
    elements: str
  delete_artifacts:
    description:
      - Whether to delete the artifacts of the discarded builds.
      - The server finds them by their properties C(build.name) and C(build.number).
    type: bool
    default: false
  wait:
    description:
      - Wait until the server has finished, and verify the list of builds.
      - With V(false), the server continues in the background, RV(discarded) contains the expected builds, and RV(verified) is V(false).
    type: bool
    default: true
  missing_ok:
    description:
      - Whether to accept a name without builds, for example before the first build. The task is then unchanged and adds a warning.
      - With V(false) the task fails, because a wrong O(build_name) or O(project) would never delete a build.
    type: bool
    default: false
seealso:
  - module: delivery.toolchain.build_record
  - module: delivery.toolchain.build_info
"""

EXAMPLES = r"""
- name: Keep the ten newest builds, but no build older than half a year
  delivery.toolchain.build_retention:
    build_name: nightly
    count: 10
    max_age: 26w
    keep: ["101"]

- name: Discard the builds of the previous year with their artifacts
  delivery.toolchain.build_retention:
    build_name: nightly
    minimum_build_date: "2026-01-01"
    delete_artifacts: true
"""

RETURN = r"""
discarded:
  description: Numbers of the discarded builds, newest first. In check mode or with O(wait=false), the expected builds.
  returned: success
  type: list
  elements: str
  sample: ["103", "102"]
kept:
  description: Numbers of the kept builds, newest first.
  returned: success
  type: list
  elements: str
  sample: ["104", "101"]
promoted:
  description: Numbers of the builds that match, but are kept because they were promoted.
  returned: success
  type: list
  elements: str
  sample: []
verified:
  description: Whether RV(discarded) and RV(kept) were verified on the server after the task.
  returned: success
  type: bool
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.builds import build_retention


def main() -> None:
    run(build_retention.BuildRetentionOptions, build_retention.BuildRetentionOperation)


if __name__ == "__main__":
    main()
