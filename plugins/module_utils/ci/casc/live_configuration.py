# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the configuration of the server from its plugin for configuration as code [ci-43]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from ...core.errors import ToolchainError
from ...core.http.transport import Transport

#: Path of the plugin.
AT = "configuration-as-code"


def live_configuration(server: Transport) -> Mapping[str, Any]:
    """Return the configuration that the server exports."""
    purpose = "exporting the configuration of the server"
    try:
        response = server.read(purpose, f"{AT}/export", method="POST", form={})
    except ToolchainError as error:
        if error.status == 404:
            error.with_hint("the plugin configuration-as-code may be missing")
        raise
    try:
        live = yaml_load(response.text)
    except Exception:  # noqa: BLE001 - the library's own classes may not be there
        live = None
    if not isinstance(live, Mapping):
        raise response.error("protocol", "the export is not YAML with a configuration")
    return live
