# SPDX-License-Identifier: GPL-3.0-or-later
"""All uses of private names of `AnsibleModule` in modules.

- `_load_params` is overridden to check parameters before Ansible converts them. If Ansible no
  longer calls it, the task fails.
- `_ansible_*` are parameters that Ansible adds to those of the task. If their prefix changes, they
  are handled as unknown options.
- `_diff` is the flag `--diff`. If it is missing, the task returns no diff and warns.

`_log_invocation` is not overridden, because Ansible logs through the public method `log`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.ansible_release import __version__
from ansible.module_utils.basic import AnsibleModule

from .sealing import ARGUMENT

INTERNAL_PREFIX = "_ansible_"
#: Name of the argument with which the action asks for findings.
REPORTS = "_toolchain_findings"
_VERSION = tuple(int(part) for part in __version__.split(".")[:2])
#: Whether `AnsibleModule` masks its result. From ansible-core 2.22 on, the controller masks it, but
#: only the exact values of `no_log` options.
MODULE_MASKS_RESULTS = _VERSION < (2, 22)


UNCHECKED = (
    f"delivery.toolchain cannot check options on ansible-core {__version__}, which no longer calls"
    " AnsibleModule._load_params: nothing was done. Use a release of ansible-core that the"
    " collection supports."
)


class HookedModule(AnsibleModule):
    """An AnsibleModule that calls `check` before Ansible checks the parameters.

    The invocation is logged only when `log_invocation` is called.
    """

    params: dict[str, Any]
    #: Whether `check` was called. If not, the module must fail.
    checked = False
    #: The sealed plan that the action passes, see `core/module/sealing.py`.
    sealed: Mapping[str, Any] | None = None
    #: Whether the result is to contain findings.
    reports = False
    _ready = False
    _logs_invocation = False

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._ready = True

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check the raw parameters, and return those for Ansible's check. May call `fail_json`."""
        return arguments

    def _load_params(self) -> None:
        super()._load_params()
        self.sealed = self.params.pop(ARGUMENT, None)
        self.reports = bool(self.params.pop(REPORTS, False)) or self.sealed is not None
        internal = {
            name: value for name, value in self.params.items() if name.startswith(INTERNAL_PREFIX)
        }
        self.checked = True
        self.params = {name: self.params[name] for name in self.params if name not in internal}
        self.params = {**internal, **self.check(self.params)}

    def log(self, msg: str, log_args: Mapping[str, Any] | None = None) -> None:
        """Log a message, except the invocation, which Ansible logs in the constructor.

        It is logged later, because only the server knows which build parameters are passwords.
        """
        if self._ready:
            super().log(msg, log_args=log_args)
        else:
            self._logs_invocation = True

    def log_invocation(self) -> None:
        """Log the invocation with the current `params`, if Ansible has tried to log it."""
        if self._logs_invocation:
            params = {name: str(value) for name, value in self.params.items()}
            words = ["Invoked", *(["with"] if params else [])]
            words += [f"{name}={value}" for name, value in params.items()]
            super().log(" ".join(words), log_args=params)

    @functools.cached_property
    def with_diff(self) -> bool:
        """Return whether the task runs with `--diff`. Warns if Ansible does not show the flag."""
        wanted = getattr(self, "_diff", None)
        if wanted is None:
            self.warn(
                f"delivery.toolchain returns no diff on ansible-core {__version__}, which has no"
                " AnsibleModule._diff"
            )
        return bool(wanted)
