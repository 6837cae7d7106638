#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_restart
short_description: Restart the CI server when its builds are done, and wait for it
version_added: 1.0.0
description:
  - Asks for a safe restart. The server starts no more builds, waits for those that run, and starts anew.
  - It has restarted when it gives a whole answer with another session mark (C(X-Jenkins-Session)) than before. On the way there
    it may answer 503, refuse connections or cut them; all this is waited out. A server without session marks has restarted
    when it answers again after it was down.
  - A server that cannot restart itself says so at once, and the task fails.
  - While the task waits, the user sees which builds the server waits for.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.ci
attributes:
  idempotent:
    description: With O(when_plugins_pending=true) a second run changes nothing; else every run restarts the server.
    support: partial
options:
  wait:
    description: Whether to wait until the server is up again.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds to wait, running builds included. Then the task fails; the restart goes on.
    type: float
    default: 600
  poll_interval:
    description: Most seconds between two looks at the server.
    type: float
    default: 2
  when_plugins_pending:
    description:
      - Restart only when the server says that a plugin waits for it. This is one that was enabled or disabled and is not yet
        so, one that is to be removed, or an update that is installed and needs a restart.
    type: bool
    default: false
notes:
  - The account needs the permission to manage the server.
  - The request is sent once. When its answer gets lost, the session mark and the server's state tell what became of it.
seealso:
  - module: delivery.toolchain.ci_plugin_info
"""

EXAMPLES = r"""
- name: Restart the server where a plugin waits for it
  delivery.toolchain.ci_restart:
    when_plugins_pending: true
    wait_timeout: 3600

- name: Restart the server in any case
  delivery.toolchain.ci_restart:
  register: restart
"""

RETURN = r"""
version:
  description:
    - The release that the server names; after a restart that was waited for, the one that came up. Null where it names none.
  returned: success
  type: str
  sample: 2.479.3
downtime:
  description:
    - Seconds from the first answer that failed to the first whole one.
    - Zero when no look fell into that time, null when nothing was restarted or waited for.
  returned: success
  type: float
  sample: 21.5
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description:
    - Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
    - C(kind) is V(timeout) when O(wait_timeout) is over, and V(failed) when somebody called the restart off.
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.server import ci_restart


def main() -> None:
    runner.run("ci", ci_restart.CiRestartOptions, ci_restart.CiRestartOperation)


if __name__ == "__main__":
    main()
