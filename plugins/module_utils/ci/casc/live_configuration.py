# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the configuration of the server from the plugin configuration-as-code [ci-43]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from ...core.errors import ToolchainError
from ...core.http.transport import Transport

#: Path of the plugin's requests.
PLUGIN_PATH = "configuration-as-code"


def live_configuration(server: Transport) -> Mapping[str, Any]:
    """Return the exported configuration. Raises `protocol` if the export is not a YAML mapping."""
    purpose = "exporting the configuration of the server"
    try:
        response = server.read(purpose, f"{PLUGIN_PATH}/export", method="POST", form={})
    except ToolchainError as error:
        if error.status == 404:
            error.with_hint("the plugin configuration-as-code may be missing")
        raise
    try:
        live = yaml_load(response.text)
    except Exception:  # noqa: BLE001 - PyYAML, and its exceptions, may be missing
        live = None
    if not isinstance(live, Mapping):
        raise response.error("protocol", "the exported configuration is not a YAML mapping")
    return live
