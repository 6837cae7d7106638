# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ci_nodes
short_description: Nodes of the CI server as hosts
version_added: 1.0.0
description:
  - Every node (agent) of the CI server is a host. Nothing is written.
  - Hosts are in the groups C(online) or C(offline), C(label_LABEL) for each label, and C(os_SYSTEM), such as C(os_linux) or C(os_windows), if the
    server knows the system. Characters that a group name must not have become underscores.
  - Nodes that the server starts with SSH have C(ansible_host) and C(ansible_port). This takes one request per node, and the permission
    Agent/ExtendedRead; without it there is a warning, and the addresses are unknown.
  - The variables C(ci_node_name), C(ci_node_labels), C(ci_node_offline), C(ci_node_temporarily_offline), C(ci_node_offline_reason),
    C(ci_node_executors), C(ci_node_idle) and C(ci_node_system) can be used in O(compose), O(groups) and O(keyed_groups).
  - The name of the file must end in C(.ci_nodes.yml) or C(.ci_nodes.yaml).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci_plugin
  - constructed
  - inventory_cache
options:
  plugin:
    description: Name of the plugin.
    type: str
    required: true
    choices: [delivery.toolchain.ci_nodes]
seealso:
  - module: delivery.toolchain.ci_node
"""

EXAMPLES = r"""
# build.ci_nodes.yml; ansible-inventory -i build.ci_nodes.yml --graph
plugin: delivery.toolchain.ci_nodes
url: https://ci.example.org
username: inventory
password: "{{ lookup('ansible.builtin.env', 'CI_TOKEN') }}"

# idle agents, groups by the number of executors, and the account for SSH
groups:
  idle: ci_node_idle and not ci_node_offline
keyed_groups:
  - key: ci_node_executors | string
    prefix: executors
compose:
  ansible_user: "'jenkins'"

cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: /tmp/ci_nodes
cache_timeout: 300
"""

import hashlib
from functools import partial
from typing import Any

from ansible.errors import AnsibleLookupError, AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.inventory.group import to_safe_group_name
from ansible.parsing.dataloader import DataLoader

from ..module_utils._lib.ci.server import ci_nodes
from ..module_utils._lib.ci.service import SERVICE
from ..module_utils._lib.core.connection.options import argument_spec, environment_name, resolve
from ..module_utils._lib.core.errors import ToolchainError, invalid
from ..module_utils._lib.core.module import input_check
from ..plugin_utils._lib import lookups
from ..plugin_utils._lib.ansible_internals import InventoryPlugin


class InventoryModule(InventoryPlugin):
    NAME = "delivery.toolchain.ci_nodes"

    def verify_file(self, path: str) -> bool:
        is_valid: bool = super().verify_file(path)
        return is_valid and path.endswith((".ci_nodes.yml", ".ci_nodes.yaml"))

    def parse(
        self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True
    ) -> None:
        super().parse(inventory, loader, path, cache)
        try:
            with lookups.without_empty_variables():
                values = self.read_config(path)
            lookups.reject_unknown(self, values)
            input_check.check_options(self.option_definitions, values)
            nodes = self._nodes(path, cache)
        except (AnsibleLookupError, ToolchainError) as error:
            raise AnsibleParserError(f"{path}: {error.message}") from None
        for node in nodes:
            self._add(node)

    def _nodes(self, path: str, may_be_old: bool) -> list[dict[str, Any]]:
        given = {name: self._value(name) for name in argument_spec(SERVICE)}
        if not given["url"]:
            variable = environment_name(SERVICE.name, "url")
            raise invalid(f"the address of the CI server is missing: set url, or {variable}")
        connection = resolve(SERVICE, given.__getitem__)
        # another server or account must not see the nodes of this one
        whose = f"{connection.url} {connection.username}"
        key = self.get_cache_key(f"{path} {hashlib.sha256(whose.encode()).hexdigest()}")
        query = partial(lookups.run_query, "ci", given.__getitem__, {}, ci_nodes.hosts)
        nodes: list[dict[str, Any]] = self.cached(key, query, may_be_old=may_be_old)
        return nodes

    def _value(self, name: str) -> Any:
        """Return the value of an option, which may be a template."""
        value = self.get_option(name)
        return self.templar.template(value) if isinstance(value, str) else value

    def _add(self, node: dict[str, Any]) -> None:
        name, variables = node["name"], dict(node["variables"])
        self.inventory.add_host(name)
        for group in node["groups"]:
            safe = to_safe_group_name(group, force=True, silent=True)
            self.inventory.add_child(self.inventory.add_group(safe), name)
        for option in ("host", "port"):
            if option in node:
                variables[f"ansible_{option}"] = node[option]
        for key, value in variables.items():
            self.inventory.set_variable(name, key, value)
        self.construct(name, variables)
