# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options that are not credentials [C1.2]."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from ..errors import invalid
from .cloud import GATEWAY

_SETTINGS: dict[str, dict[str, Any]] = {
    "url": {"type": "str", "empty": True, "whole": True},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path", "no_log": False},
    "timeout": {"type": "float", "default": 30},
    "retries": {"type": "int", "default": 3},
    "retry_max_wait": {"type": "float", "default": 60},
}
_CLOUD: dict[str, dict[str, Any]] = {
    "cloud_id": {"type": "str"},
    "cloud_gateway": {"type": "str", "default": GATEWAY},
}
_SERVICE_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "repo": {
        "dialect": {"type": "str", "choices": ["auto", "generic", "jfrog"], "default": "auto"},
        "vendor": {"type": "str", "default": "Vendor"},
        "platform_url": {"type": "str"},
    },
    "tracker": {
        "dialect": {"type": "str", "choices": ["auto", "server", "cloud"], "default": "auto"},
        "accept_language": {"type": "str"},
        **_CLOUD,
    },
    "wiki": {
        "dialect": {
            "type": "str",
            "choices": ["auto", "server", "cloud_v1", "cloud_v2"],
            "default": "auto",
        },
        **_CLOUD,
    },
}


def settings_options(service: str) -> dict[str, dict[str, Any]]:
    """Return the options that are not credentials, as an argument spec without fallbacks."""
    return {**_SETTINGS, **_SERVICE_SETTINGS.get(service, {})}


def check_settings(service: str, settings: Mapping[str, Any]) -> None:
    """Raise `invalid` for an unreadable certificate or key file, or a number out of range."""
    _check_files(service, settings)
    _check_numbers(service, settings)


def _check_files(service: str, settings: Mapping[str, Any]) -> None:
    for name in ("ca_path", "client_cert", "client_key"):
        file = settings.get(name)
        if file is not None and not os.access(file, os.R_OK):
            absolute = os.path.abspath(file)
            why = "cannot be read" if os.path.exists(file) else "does not exist"
            raise invalid(f"{name} of the {service} service: {absolute} {why}")


def _check_numbers(service: str, settings: Mapping[str, Any]) -> None:
    timeout = settings.get("timeout")
    if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
        raise invalid(
            f"timeout of the {service} service is {timeout:g}, but must be more than 0 seconds"
        )
    for name in ("retries", "retry_max_wait"):
        value = settings.get(name)
        if value is not None and not value >= 0:
            raise invalid(f"{name} of the {service} service is {value:g}, but must be 0 or more")
