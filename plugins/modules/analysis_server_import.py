#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_server_import
short_description: Import the settings of another code analysis server
version_added: 1.0.0
description:
  - Starts the import once and waits until the server reports that it has finished. While it waits, the task shows the progress.
  - A server may show no import, or report a status that is not documented. If this does not change for 15 seconds, or for half of
    O(wait_timeout) if that is shorter, the import counts as finished. A warning reports that its result is unknown.
  - If the response of the request is lost, the status of the imports is checked. The import is never repeated without this check.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: none
    details: The server does not show whether it already has the settings of the other server. Every run imports them.
options:
  source_url:
    description: URL of the server to import from.
    type: str
    required: true
  source_username:
    description: Administrator of that server.
    type: str
    required: true
  source_password:
    description: Password of the administrator.
    type: str
  wait:
    description: Whether to wait for the end of the import.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait. Then the task fails, and the import continues.
    type: float
    default: 3600
  poll_interval:
    description: Maximum polling interval for the status in seconds.
    type: float
    default: 5
seealso:
  - module: delivery.toolchain.analysis_config
"""

EXAMPLES = r"""
- name: Move to a new server
  delivery.toolchain.analysis_server_import:
    source_url: https://old-analysis.example.com:8080
    source_username: admin
    source_password: "{{ old_server_password }}"
  vars:
    old_server_password: source-password-1234567890
"""

RETURN = r"""
status:
  description: Status of the import at its end. Empty if the server shows no status, or with O(wait=false).
  returned: success
  type: list
  elements: dict
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_server_import


def main() -> None:
    run(
        analysis_server_import.AnalysisServerImportOptions,
        analysis_server_import.AnalysisServerImportOperation,
    )


if __name__ == "__main__":
    main()
