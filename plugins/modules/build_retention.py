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
  - Discards builds that are beyond O(count) or older than O(max_age) or O(minimum_build_date), except those in O(keep).
  - Which builds will go is computed from the list of builds, by the clock of the server, and shown as diff, in check mode
    as well. Where nothing is to go, nothing is written.
  - The server never discards a build that was promoted. Such builds are not announced; RV(promoted) names them.
  - After a synchronous run the list is read again, and RV(discarded) is what really went. Where nothing went although it
    should have, the task fails; where only some did, a warning names the others.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  build_name:
    description: Name of the builds. A name without builds is unchanged, with a warning.
    type: str
    required: true
  count:
    description: How many builds to keep, the newest first; at least 1. A build that is kept for another reason counts, too.
    type: int
  max_age:
    description:
      - Builds older than this go. A number with C(w) (weeks), C(d) (days), C(h) (hours) or C(m) (minutes), as V(90d).
      - The age is counted from the clock of the server.
    type: str
  minimum_build_date:
    description: Builds older than this go. A date or time as in ISO-8601 (UTC where it names no zone), or epoch milliseconds.
    type: str
  keep:
    description:
      - Numbers of builds that stay whatever their age.
      - Where something would be discarded, a number that no build has fails the task before anything is.
    type: list
    elements: str
  delete_artifacts:
    description:
      - Whether the artifacts of the discarded builds go, too.
      - The server finds them by their properties C(build.name) and C(build.number).
    type: bool
    default: false
  wait:
    description:
      - Whether the server answers when it has finished, and the list is read again.
      - V(false) leaves the server at work; RV(discarded) is then what is expected to go, and RV(verified) is V(false).
    type: bool
    default: true
seealso:
  - module: delivery.toolchain.build_record
  - module: delivery.toolchain.build_info
"""

EXAMPLES = r"""
- name: Keep the ten newest builds, and none that is older than half a year
  delivery.toolchain.build_retention:
    build_name: nightly
    count: 10
    max_age: 26w
    keep: ["101"]

- name: Discard what was built before the new year, artifacts included
  delivery.toolchain.build_retention:
    build_name: nightly
    minimum_build_date: "2026-01-01"
    delete_artifacts: true
"""

RETURN = r"""
discarded:
  description: Numbers of the builds that went (in check mode, or with O(wait=false), that will go), the newest first.
  returned: success
  type: list
  elements: str
  sample: ["103", "102"]
kept:
  description: Numbers of the builds that stay, the newest first.
  returned: success
  type: list
  elements: str
  sample: ["104", "101"]
promoted:
  description: Numbers of the builds that would have to go, but stay because they were promoted.
  returned: success
  type: list
  elements: str
  sample: []
verified:
  description: Whether RV(discarded) and RV(kept) are what the server shows after the task.
  returned: success
  type: bool
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description: Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.builds import build_retention


def main() -> None:
    runner.run(
        "repo", build_retention.BuildRetentionOptions, build_retention.BuildRetentionOperation
    )


if __name__ == "__main__":
    main()
