# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of the action `bookkeeping`, by the file that contains them."""

from __future__ import annotations

from typing import NamedTuple


class Subject(NamedTuple):
    """A file of steps.

    :param steps: functions of the file that a task can name
    :param reads: variables of playbooks that the file reads
    """

    steps: tuple[str, ...]
    reads: tuple[str, ...] = ()


SUBJECTS = {
    "inputs": Subject(("check", "forget", "read_survey", "roles"), ("enforce_roles",)),
    "folder": Subject(("read_folder", "validate_folder", "choose_entries", "apply", "unmanaged")),
    "deletions": Subject(
        ("describe", "find_removals", "delete", "deletable"), ("enforce_connections",)
    ),
    "reports": Subject(
        ("findings", "reported", "begin", "finish", "summarise", "warn"),
        (
            *("drift_fail", "drift_ignore", "drift_output", "drift_page", "drift_plan_key"),
            *("drift_table", "drift_who", "enforce_failures", "enforce_reason"),
            *("summary_expected", "summary_folder", "summary_max_age", "summary_reports"),
        ),
    ),
    "plans": Subject(
        ("open_plan", "compare"),
        (
            *("enforce_approvals", "enforce_connections", "enforce_only", "enforce_plan"),
            *("enforce_plan_key", "enforce_plan_max_age", "enforce_plan_rest"),
            *("enforce_requester", "enforce_signers"),
        ),
    ),
    "tickets": Subject(
        ("plan_issues",),
        ("tickets_close_status", "tickets_close_transition", "tickets_max_new", "tickets_per"),
    ),
    "adoption": Subject(
        ("choose_adopted", "export_folder", "adopt", "require_adopted"),
        (
            *("adopt_connections", "adopt_deletions", "adopt_findings", "adopt_force"),
            *("adopt_into", "adopt_report", "enforce_connections"),
        ),
    ),
    "matching": Subject(
        ("users_without_account", "addresses_of_users", "write_accounts"),
        ("match_accounts_file", "match_accounts_from", "match_accounts_to"),
    ),
    "builds": Subject(("list_builds", "known_builds", "soaked"), ("release_builds",)),
    "gates": Subject(
        ("freeze", "holds", "held", "waits"),
        (
            *("release_build_publish", "release_builds", "release_bundles", "release_freeze"),
            *("release_hold", "release_images"),
        ),
    ),
    "exports": Subject(("exported", "accounts_of_exports")),
    "rotation": Subject(("rotation_options", "rotation_entries", "rotation_steps")),
}
