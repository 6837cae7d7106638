# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the steps of the rotation of a login."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....module_utils._lib.core.errors import ToolchainError
from .. import rotation
from .run import Result, Run, StepError


def rotation_options(run: Run) -> Result:
    """Reject the lifetimes that the module of the issuer would reject, before any request."""
    names = ("expires_in", "renew_before")
    given = {name: run.value(f"login_rotation_{name}") for name in names}
    try:
        rotation.check_lifetimes(str(run.value("login_rotation_issuer", "repo")), **given)
    except ToolchainError as error:
        raise StepError(f"login_rotation_{error.message}.") from None
    return {}


def rotation_entries(
    run: Run,
    credentials: Sequence[Mapping[str, Any]],
    name: str,
    token: Mapping[str, Any] | None = None,
) -> Result:
    """Return the entries of `ci_credential` for the credentials of a login."""
    return {"entries": rotation.entries(credentials, name, token)}


def rotation_steps(run: Run, **given: Any) -> Result:
    """Return the steps of the rotation that are due."""
    return rotation.steps(**given)
