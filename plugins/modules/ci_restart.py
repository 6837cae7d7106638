#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_restart
short_description: Restart the CI server after its running builds, and wait for it
version_added: 1.0.0
description:
  - Requests a safe restart. The server starts no more builds, waits for running builds and restarts.
  - The server has restarted when a complete response has a new session header (C(X-Jenkins-Session)). Until then, status 503 and refused or
    closed connections are tolerated. A server without this header has restarted when it responds again after it was down.
  - If a server cannot restart itself, it reports this immediately, and the task fails.
  - While the task waits, it shows the builds that the server waits for.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: Every run restarts the server, unless O(when_plugins_pending=true).
options:
  wait:
    description: Whether to wait until the server has restarted.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait, including running builds. Then the task fails, and the restart continues.
    type: float
    default: 600
  poll_interval:
    description: Maximum polling interval in seconds.
    type: float
    default: 2
  when_plugins_pending:
    description:
      - Restart only if a plugin is waiting for a restart, after it was enabled, disabled, removed or updated.
    type: bool
    default: false
notes:
  - The account needs the permission to manage the server.
  - The request is sent once. If its response is lost, the result is detected from the session header and the state of the server.
seealso:
  - module: delivery.toolchain.ci_plugin_info
"""

EXAMPLES = r"""
- name: Restart the server if a plugin is waiting for a restart
  delivery.toolchain.ci_restart:
    when_plugins_pending: true
    wait_timeout: 3600

- name: Restart the server in any case
  delivery.toolchain.ci_restart:
  register: restart
"""

RETURN = r"""
version:
  description: Version of the server. If the task waited for a restart, the version after it. Null if the server reports no version.
  returned: success
  type: str
  sample: 2.479.3
downtime:
  description:
    - Seconds from the first failed response to the first complete response.
    - Zero if no poll occurred during the downtime, null if nothing was restarted or waited for.
  returned: success
  type: float
  sample: 21.5
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(timeout) after O(wait_timeout), and V(failed) if the restart was cancelled.
  returned: on failure
  type: dict
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.server import ci_restart


def main() -> None:
    run(ci_restart.CiRestartOptions, ci_restart.CiRestartOperation)


if __name__ == "__main__":
    main()
