# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: sealed_plan
short_description: Make and check a sealed plan
version_added: 1.0.0
description:
  - The playbooks C(delivery.toolchain.drift) and C(delivery.toolchain.enforce) use this lookup. C(drift) makes a plan of its
    findings, C(enforce) applies only this plan.
author: delivery.toolchain contributors (@delivery-toolchain)
options:
  _terms:
    description:
      - V(start) removes the plan of an earlier run from O(folder), and returns the variables with which modules add digests to
        their results.
      - V(seal) returns the plan of the findings so far.
      - V(open) checks O(plan), and returns the variables with which modules write this plan only.
      - V(compare) returns a line for each finding that is new, gone or different since O(plan) was made.
      - V(conflict) returns the message for these lines.
      - V(unread) returns the message if an object cannot be compared, else an empty string.
    type: list
    elements: str
    choices: [start, seal, open, compare, conflict, unread]
    required: true
  plan:
    description: A plan, as a file or a mapping, or the list of plans that slices of a run have made.
    type: raw
  folder:
    description: Folder of the report. Without it, no plan is removed.
    type: str
  salt:
    description: The salt of the digests, which V(start) has returned.
    type: str
  key:
    description: Name of the variable with the key of the seal. If the variable is undefined, E(TOOLCHAIN_PLAN_KEY) has the key.
    type: str
  max_age:
    description: Maximum age of O(plan), such as V(2d), V(26h) or V(30m).
    type: str
  rest:
    description: Whether a change that is not in O(plan) fails the run (V(fail)) or is left out (V(skip)).
    type: str
    default: fail
"""

EXAMPLES = r"""
- name: Make a plan
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.sealed_plan', 'seal', salt='a random text').entries | default([]) }}"
"""

RETURN = r"""
_raw:
  description: A mapping or a list, depending on the term.
  type: list
  elements: raw
"""

import os
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ansible_collections.delivery.toolchain.plugins.module_utils.core.connection.options import (
    SERVICES,
    environment_name,
    variable_name,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import ToolchainError
from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import (
    without_user_info,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.times import age_of
from ansible_collections.delivery.toolchain.plugins.plugin_utils import ansible_internals, lookups
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import (
    sealed,
    switch,
    writing,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import Contents

_RESTS = ("fail", "skip")
_KEY = "TOOLCHAIN_PLAN_KEY"


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        self.set_options(var_options=variables, direct=kwargs)
        lookups.require_terms(terms, "what to do with the plan")
        tasks: dict[str, Callable[[dict[str, Any]], Any]] = {
            "start": self._start,
            "seal": self._seal,
            "open": self._open,
            "compare": self._compare,
            "conflict": lambda _variables: sealed.conflict(self.get_option("plan"), _found()),
            "unread": lambda _variables: sealed.failed_comparison(_found()),
        }
        try:
            return [tasks[term](variables or {}) for term in terms]
        except sealed.PlanError as error:
            message = f"The sealed plan {error}."
        except ToolchainError as error:
            message = f"{error}."
        raise AnsibleError(message)

    def _start(self, variables: dict[str, Any]) -> dict[str, Any]:
        self._key(variables)  # an invalid key must end the run before its first request
        folder = self.get_option("folder")
        if folder:
            writing.remove_plan(writing.resolved(folder, variables))
        return {"salt": secrets.token_hex(16)}

    def _seal(self, variables: dict[str, Any]) -> dict[str, Any]:
        salt, key = self.get_option("salt"), self._key(variables)
        return sealed.make(_found(), salt, key, _hosts(variables))

    def _key(self, variables: Mapping[str, Any]) -> str | None:
        """Return the key of the seal, or `None` if no key is set.

        An empty key is an error: a pipeline without access to the secret must not skip the seal.
        """
        name, source = self.get_option("key"), _KEY
        if name in variables:
            source, key = name, ansible_internals.template_of(self)(variables[name])
        elif _KEY in os.environ:
            key = os.environ[_KEY]
        else:
            return None
        # up to ansible-core 2.18, a value of a vault is an object of another type
        wrong = key is None or key == 0 or isinstance(key, bool | float | Mapping | list | tuple)
        if wrong or not str(key).strip():
            raise sealed.PlanError(
                f"has no valid key: {source} is set, but is empty or not a string. Set it to the key"
                " of the seal, or remove it"
            )
        return str(key)

    def _open(self, variables: dict[str, Any]) -> dict[str, Any]:
        rest, limit = self.get_option("rest"), self.get_option("max_age")
        if rest not in _RESTS:
            raise AnsibleError(f"enforce_plan_rest must be {' or '.join(_RESTS)}, not '{rest}'.")
        max_age = age_of("enforce_plan_max_age", str(limit)) if limit else None
        plans = self._plans(variables)
        configured, key = self._configured(variables), self._key(variables)
        for sealed_plan in plans.plans:
            sealed.verify(
                sealed_plan,
                key=key,
                max_age=max_age,
                at=datetime.now(timezone.utc),
                configured=configured,
            )
        plans.require_hosts(_hosts(variables))
        if key is None and any(sealed_plan.get("seal") for sealed_plan in plans.plans):
            Display().warning(
                "The seal of the plan was not verified, because no key is set: set enforce_plan_key"
                f" or {_KEY} to the key of drift."
            )
        plan = plans.of_host(_host(variables))
        names = ("salt", "writes", "ignored")
        return {**{name: plan[name] for name in names}, "rest": rest}

    def _compare(self, variables: dict[str, Any]) -> list[str]:
        return self._plans(variables).differences(_found(), _hosts(variables))

    def _plans(self, variables: dict[str, Any]) -> sealed.Plans:
        return sealed.read(self.get_option("plan"), lambda name: writing.resolved(name, variables))

    def _configured(self, variables: Mapping[str, Any]) -> dict[tuple[str, str], str]:
        """Return the addresses that the host connects to, by host and service."""
        template = ansible_internals.template_of(self)
        connections = _mapping(template(variables.get("enforce_connections")))
        found = {}
        for service in SERVICES:
            url = (
                _mapping(connections.get(service)).get("url")
                or template(variables.get(variable_name(service, "url")))
                or os.environ.get(environment_name(service, "url"))
            )
            if url:
                address = without_user_info(str(url)).split("?")[0].rstrip("/")
                found[_host(variables), service] = address
        return found


def _mapping(given: Any) -> Mapping[str, Any]:
    """Return a mapping unchanged, and {} for other values, which `enforcement` rejects."""
    return given if isinstance(given, Mapping) else {}


def _host(variables: Mapping[str, Any]) -> str:
    return str(variables.get("inventory_hostname"))


def _hosts(variables: Mapping[str, Any]) -> list[str]:
    """Return all hosts of the play, including failed hosts."""
    return list(map(str, variables.get("ansible_play_hosts_all") or [_host(variables)]))


def _found() -> Contents:
    return switch.so_far() or Contents(check=True).since()
