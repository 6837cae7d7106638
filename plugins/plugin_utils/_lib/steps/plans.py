# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a sealed plan and its approvals, and compare it with the servers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from ansible.utils.display import Display

from ....module_utils._lib.core.errors import printable, shorten
from ....module_utils._lib.core.times import age_of
from .. import variables
from ..report import approvals, contents, sealed, switch
from .run import Result, Run, StepError

_RESTS = ("fail", "skip")
_KEY = "TOOLCHAIN_PLAN_KEY"


def open_plan(run: Run) -> Result:
    """Check the sealed plan. Return the variable with which modules write this plan only."""
    rest, limit = run.value("enforce_plan_rest", "fail"), run.value("enforce_plan_max_age")
    if rest not in _RESTS:
        raise StepError(f"enforce_plan_rest must be {' or '.join(_RESTS)}, not '{rest}'.")
    max_age = None if limit is None else age_of("enforce_plan_max_age", str(limit))
    (plans, approved), key = _plans(run), seal_key(run, "enforce_plan_key")
    addresses = run.addresses(run.value("enforce_connections"))
    configured = {(run.host, service): url for service, url in addresses.items()}
    for plan in plans.plans:
        at = datetime.now(timezone.utc)
        sealed.verify(plan, key=key, max_age=max_age, at=at, configured=configured)
    plans.require_hosts(run.hosts)
    if key is None and any(plan.get("seal") for plan in plans.plans):
        Display().warning(
            "The seal of the plan was not verified, because no key is set: set enforce_plan_key"
            f" or {_KEY} to the key of drift."
        )
    rest = "skip" if plans.only else rest
    names = [asdict(approval) for approval in approved]
    return {"sealed": {**plans.of_host(run.host), "rest": rest}, "report": {"approvals": names}}


def compare(run: Run) -> Result:
    """Compare the findings with the sealed plan, before the first write.

    Return a line for each change that is left out.
    """
    found = found_so_far()
    unread = sealed.failed_comparison(found)
    if unread:
        raise StepError(unread, {"is_known": True}, kind="failed")
    plans, _approved = _plans(run)
    differences = plans.differences(found, run.hosts)
    if differences and run.value("enforce_plan_rest", "fail") == "fail":
        raise StepError(sealed.conflict(differences, found), kind="conflict")
    return {"left_out": differences, "report": {"restart": True}}


def found_so_far() -> contents.Contents:
    return switch.so_far() or contents.Contents(check=True).since()


def _plans(run: Run) -> tuple[sealed.Plans, list[approvals.Approval]]:
    """Return the plans, and the approvals that they have."""
    plan, given = run.value("enforce_plan"), run.value("enforce_only")
    if plan is None:
        raise StepError(
            "enforce_only chooses findings of a sealed plan, but enforce_plan is not set: set it to"
            " the plan.json of drift, or leave enforce_only out."
        )
    only = variables.entries_of(given) if isinstance(given, str) else given
    if only == []:
        raise StepError(
            "enforce_only is an empty list: name ids of findings, or leave it out to apply the"
            " whole plan."
        )
    only = [] if only is None else only
    if not isinstance(only, list):
        raise StepError(
            f"enforce_only must be a list of ids of findings, not '{printable(str(given), 100)}'."
        )
    ids = [str(one).strip() for one in only]
    rules = approval_rules(run)
    approved: list[approvals.Approval] = []
    if rules is None:
        return sealed.read(plan, run.path, ids), approved

    def approve(file: Path, content: bytes) -> None:
        approved.extend(approvals.verify(rules, file, content, Display().warning))

    return sealed.read(plan, run.path, ids, approve), approved


def approval_rules(run: Run) -> approvals.Rules | None:
    """Return the approvals that the plan needs, or `None` if it needs none."""
    signers, requester = run.value("enforce_signers"), run.value("enforce_requester")
    number = run.template(run.variables.get("enforce_approvals", 0))
    if isinstance(number, bool) or not re.fullmatch(r"[0-9]{1,3}", str(number)):
        raise StepError(
            f"enforce_approvals must be a number of persons, or 0, not '{shorten(str(number))}'."
        )
    if int(number) == 0:
        if signers is not None or requester is not None:
            raise StepError(
                "enforce_signers and enforce_requester have no effect without enforce_approvals:"
                " set it to the number of persons who must approve the plan, or leave them out."
            )
        return None
    if run.value("enforce_plan") is None:
        raise StepError(
            "enforce_approvals approves a sealed plan, but enforce_plan is not set: set it to the"
            " plan.json of drift."
        )
    if not isinstance(requester, str) or not requester.isprintable() or not requester.strip():
        raise StepError(
            "enforce_approvals needs enforce_requester: set it to the name of the person who asks"
            " for the run, as in the file of signers."
        )
    if not isinstance(signers, str):
        raise StepError(
            "enforce_approvals needs enforce_signers: set it to a file in the format of"
            " allowed_signers of OpenSSH."
        )
    return approvals.Rules(int(number), run.path(signers), requester)


def seal_key(run: Run, name: str) -> str | None:
    """Return the key of the seal, or `None` if no key is set.

    An empty key is an error: a pipeline without access to the secret must not skip the seal.

    :param name: variable with the key
    """
    source: str = name
    if name in run.variables:
        key = run.template(run.variables[name])
    elif _KEY in os.environ:
        source, key = _KEY, os.environ[_KEY]
    else:
        return None
    # up to ansible-core 2.18, a value of a vault is an object of another type
    wrong = key is None or key == 0 or isinstance(key, bool | float | Mapping | list | tuple)
    if wrong or not str(key).strip():
        raise sealed.PlanError(
            f"has no valid key: {source} is set, but is empty or not a string. Set it to the key of"
            " the seal, or remove it"
        )
    return str(key)
