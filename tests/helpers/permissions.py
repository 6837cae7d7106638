# SPDX-License-Identifier: GPL-3.0-or-later
"""List the permissions that the sandbox knows."""

from __future__ import annotations

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import client as ci

ADMIN = "admin"

#: Every permission that an account of a service may have, except the one that includes all others.
ALL: dict[str, tuple[str, ...]] = {
    "repo": ("read", "deploy", "delete", "annotate"),
    "tracker": (
        *("browse", "create", "edit", "assign", "assignable", "transition"),
        *("comment", "watch", "attach", "link", "delete", "administer"),
    ),
    "wiki": (
        *("view", "add", "delete", "attach", "delete_attachments", "administer"),
        "create_space",
    ),
    "ci": (
        *(ci.READ_SERVER, "hudson.model.Hudson.SystemRead", ci.MANAGE),
        *(ci.READ_JOB, ci.EXTENDED_READ, ci.CONFIGURE, ci.CREATE, ci.DELETE, ci.BUILD, ci.CANCEL),
        *(*ci.OF_CREDENTIALS, *ci.OF_NODES, *ci.OF_VIEWS),
    ),
    "analysis": (
        *("create_project", "manage_roles", "manage_users", "access_source_files", "assign_role"),
        *("change_project_settings", "create_build", "delete_build", "delete_project"),
        *("manage_modules", "use_local_configuration", "change_issue_status"),
        *("webapi_access", "execute_kwxsync"),
    ),
}
#: Every permission that a module may need: also those that no test withholds alone.
KNOWN = {service: {ADMIN, *names} for service, names in ALL.items()}
KNOWN["ci"] |= {ci.ADMINISTER, ci.DELETE_RUN, ci.UPDATE_RUN}
