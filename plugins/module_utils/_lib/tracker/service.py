# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and logins of the issue tracker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from ..atlassian.service import CLOUD, AtlassianService
from ..core.connection.service import Spec


class TrackerService(AtlassianService):
    """The issue tracker."""

    name = "tracker"
    product = "jira"
    interface_path = re.compile(r"/rest(/(api|auth)(/.*)?)?$")
    settings: ClassVar[Mapping[str, Spec]] = {
        "dialect": {"type": "str", "choices": ["auto", "server", "cloud"], "default": "auto"},
        "accept_language": {"type": "str"},
        **CLOUD,
    }


SERVICE = TrackerService()
