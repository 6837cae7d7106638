# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and logins of the wiki."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ..atlassian.service import CLOUD, AtlassianService, is_cloud_host
from ..core.connection.service import Spec
from ..core.errors import invalid

_ABOVE_WIKI = re.compile(r"(?:/ex/confluence/[^/]+)?")


class WikiService(AtlassianService):
    """The wiki."""

    name = "wiki"
    product = "confluence"
    below = "/wiki"
    interface_path = re.compile(r"/rest(/api(/.*)?)?$|(?<=/wiki)/api/v2(/.*)?$")
    settings: ClassVar[Mapping[str, Spec]] = {
        "dialect": {
            "type": "str",
            "choices": ["auto", "server", "cloud_v1", "cloud_v2"],
            "default": "auto",
        },
        **CLOUD,
    }

    def check(self, url: str, settings: Mapping[str, Any]) -> None:
        """Raise `invalid` for an invalid `cloud_id`, or for a cloud address without `/wiki`."""
        super().check(url, settings)
        cloud = is_cloud_host(url) or str(settings.get("dialect")).startswith("cloud_")
        named = settings.get("cloud_id") is not None
        if cloud and not named and _ABOVE_WIKI.fullmatch(urlsplit(url).path):
            raise invalid(f"the cloud wiki is not at {url}: set url to {url}{self.below}")


SERVICE = WikiService()
