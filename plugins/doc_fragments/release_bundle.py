# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that identify a release bundle, and those for waiting until the server has finished."""

from __future__ import annotations

_PLACE = """
notes:
  - The server needs Release Lifecycle (Artifactory 7.63.2 or newer, Pro or higher), which is next to the repository manager. See
    O(platform_url).
options:
  project:
    description: Key of the project (JFrog Projects) that has the release bundle.
    type: str
  repository_key:
    description: Repository of the release bundle. The default is V(release-bundles-v2), in a project V(KEY-release-bundles-v2).
    type: str
"""

_VERSION = """
  name:
    description: Name of the release bundle. At most 128 letters, digits, C(_), C(.) and C(-).
    type: str
    required: true
  version:
    description: Version of the release bundle. At most 32 letters, digits, C(_), C(.) and C(-).
    type: str
    required: true
  wait:
    description: Whether to wait until the server has finished.
    type: bool
    default: true
  wait_timeout:
    description: Maximum wait in seconds.
    type: float
    default: 600
  poll_interval:
    description: Maximum pause in seconds between two status requests.
    type: float
    default: 5
"""


class ModuleDocFragment:
    DOCUMENTATION: str = _PLACE + _VERSION
    INFO: str = _PLACE
