# SPDX-License-Identifier: GPL-3.0-or-later
"""The private names of `AnsibleModule` that modules rely on: all of them, and only here.

- `_load_params` is overridden, so that parameters are checked before Ansible converts them. If
  Ansible no longer calls it, the task fails.
- `_ansible_*` are parameters that Ansible adds to those of the task. If their prefix changes, they
  pass the checks as unknown options do.
- `_diff` is the flag `--diff`. Without it the task returns no diff and warns.

`_log_invocation` is not overridden: Ansible logs through the public method `log`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.ansible_release import __version__
from ansible.module_utils.basic import AnsibleModule

from ..plans.sealing import ARGUMENT

INTERNAL_PREFIX = "_ansible_"
_VERSION = tuple(int(part) for part in __version__.split(".")[:2])
#: Since ansible-core 2.22 the controller masks results, and only the exact values of `no_log`
#: options. Older releases mask the result in the module.
MODULE_MASKS_RESULTS = _VERSION < (2, 22)


UNCHECKED = (
    f"delivery.toolchain cannot check options on ansible-core {__version__}, which no longer calls"
    " AnsibleModule._load_params: nothing was done. Use a release of ansible-core that the"
    " collection supports."
)


class HookedModule(AnsibleModule):
    """An AnsibleModule that calls `check` before Ansible checks the parameters, and that logs its
    invocation when `log_invocation` is called.
    """

    params: dict[str, Any]
    #: Whether `check` was called. A module that was set up without it must fail.
    checked = False
    #: The sealed plan that the action passes, see `core/plans/sealing.py`.
    sealed: Mapping[str, Any] | None = None
    _ready = False
    _logs_invocation = False

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._ready = True

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters for Ansible's own check. May call `fail_json`."""
        return arguments

    def _load_params(self) -> None:
        super()._load_params()
        self.sealed = self.params.pop(ARGUMENT, None)
        internal = {
            name: value for name, value in self.params.items() if name.startswith(INTERNAL_PREFIX)
        }
        self.checked = True
        self.params = {name: self.params[name] for name in self.params if name not in internal}
        self.params = {**internal, **self.check(self.params)}

    def log(self, msg: str, log_args: Mapping[str, Any] | None = None) -> None:
        """Log a message. While the module is set up, Ansible logs the parameters: that waits for
        `log_invocation`, because only the server knows which build parameters are passwords.
        """
        if self._ready:
            super().log(msg, log_args=log_args)
        else:
            self._logs_invocation = True

    def log_invocation(self) -> None:
        """Log the parameters as `params` shows them now, if Ansible wanted to log them."""
        if self._logs_invocation:
            shown = {name: str(value) for name, value in self.params.items()}
            words = ["Invoked", *(["with"] if shown else [])]
            words += [f"{name}={value}" for name, value in shown.items()]
            super().log(" ".join(words), log_args=shown)

    @functools.cached_property
    def with_diff(self) -> bool:
        """Return whether the task runs with `--diff`; warns if Ansible has no such flag."""
        wanted = getattr(self, "_diff", None)
        if wanted is None:
            self.warn(
                f"delivery.toolchain returns no diff on ansible-core {__version__}, which has no"
                " AnsibleModule._diff"
            )
        return bool(wanted)
