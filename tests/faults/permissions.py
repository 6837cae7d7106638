# SPDX-License-Identifier: GPL-3.0-or-later
"""Every module that writes, times every permission that it needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import in_process
from tests.helpers.cases import CASES, first_arguments, seed, settings

ITEM, OVERALL = "hudson.model.Item", "hudson.model.Hudson"
ADMIN, ADMINISTER = "admin", f"{OVERALL}.Administer"
LOOK, MANAGE = f"{OVERALL}.Read", f"{OVERALL}.Manage"
SEE, EXTENDED, CONFIGURE = f"{ITEM}.Read", f"{ITEM}.ExtendedRead", f"{ITEM}.Configure"
CREATE, DELETE_JOB = f"{ITEM}.Create", f"{ITEM}.Delete"

#: Every permission that an account of a service may have, besides the one that stands for all.
ALL: dict[str, tuple[str, ...]] = {
    "repo": ("read", "deploy", "delete", "annotate"),
    "tracker": (
        *("browse", "create", "edit", "assign", "assignable", "transition"),
        *("comment", "attach", "link", "delete", "administer"),
    ),
    "wiki": ("view", "add", "delete", "attach", "delete_attachments", "administer"),
    "ci": (
        *(LOOK, f"{OVERALL}.SystemRead", MANAGE),
        *(SEE, EXTENDED, CONFIGURE, CREATE, DELETE_JOB, f"{ITEM}.Build", f"{ITEM}.Cancel"),
    ),
    "analysis": (
        *("create_project", "manage_roles", "manage_users", "access_source_files", "assign_role"),
        *("change_project_settings", "create_build", "delete_build", "delete_project"),
        *("manage_modules", "use_local_configuration", "change_issue_status"),
        *("webapi_access", "execute_kwxsync"),
    ),
}
#: Permissions that no documented read tells: check mode says what would be done, and the run is
#: refused. What tells them on the way, in single operations, is `foretold` there.
BLIND: dict[str, set[str]] = {
    # copies and promotions are rehearsed by the server; what an account may do in a repository
    # (`?permissions` of an item, the permission targets) is read by administrators alone, and
    # no document names a read of what it may do with build records
    "repo": {"deploy", "delete", "annotate"},
    # what may be done with an issue or a project is told; who may be assigned is searched by name,
    # in what the account may see of the accounts
    "tracker": {"assignable"},
    # a page tells what may be done with itself; creating below it is none of that, and a space
    # does not tell it everywhere [wiki-18]
    "wiki": {"add", "attach"},
    # the interface tells nothing of permissions: web pages, which are none, leave out links, and a
    # plugin that few servers have tells of jobs
    "ci": {MANAGE, CREATE, CONFIGURE, DELETE_JOB, f"{ITEM}.Build", f"{ITEM}.Cancel"},
    # roles and who has them are read, but no document says which permission which action needs
    "analysis": set(ALL["analysis"]),
}
TOKEN, LTOKEN = "limited-token-1234567890", "5555" * 16
LOGINS: dict[str, dict[str, str]] = {
    "repo": {"token": TOKEN, "dialect": "jfrog"},
    "tracker": {"token": TOKEN},
    "wiki": {"token": TOKEN},
    "ci": {"username": "limited", "password": TOKEN},
    "analysis": {"username": "limited", "ltoken": LTOKEN},
}


Needs = Mapping[str, str]


@dataclass(frozen=True)
class Operation:
    """A task, and for each permission that it needs the kind of error without it.

    `arguments`: those of its contract case where there are none; `more` are added. `told`: for a
    permission whose lack shows in the middle, what the result says of what was done before.
    `again`: what an unchanged run needs besides. `complete`: permissions whose lack shows only
    after everything was done. `foretold`: those of `BLIND` whose lack is read here all the same;
    `untold`: others whose lack is not.
    """

    module: str
    needs: Needs
    arguments: Mapping[str, Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    again: Sequence[str] = ()
    complete: Sequence[str] = ()
    foretold: Sequence[str] = ()
    untold: Sequence[str] = ()

    @property
    def blind(self) -> set[str]:
        """The permissions that check mode promises something without."""
        return (BLIND[self.service] - set(self.foretold)) | set(self.untold)

    @property
    def service(self) -> str:
        return str(CASES[self.module]["service"])

    def given(self, url: str, folder: Path) -> dict[str, Any]:
        arguments = first_arguments(self.module) if self.arguments is None else self.arguments
        text = json.dumps({**arguments, **self.more}).replace("FOLDER", str(folder))
        return {"url": url, **LOGINS[self.service], **json.loads(text)}


@dataclass(frozen=True)
class Played:
    """What a module returned, and the writes that the server carried out for it."""

    result: Mapping[str, Any]
    effects: Sequence[Mapping[str, Any]]


def without(operation: Operation, missing: str) -> list[str]:
    """Every permission but one, and but the one that stands for all."""
    return [one for one in ALL[operation.service] if one != missing]


def allow(sandbox: Sandbox, service: str, granted: Sequence[str]) -> None:
    """The account of `LOGINS` has these permissions, and no others."""
    given = list(granted)
    accounts: dict[str, dict[str, Any]] = {
        "repo": {"permissions": given, "admin": ADMIN in given},
        "tracker": {"permissions": {"*": given}},
        "wiki": {"permissions": {"*": given}},
        "ci": {"api_tokens": [TOKEN], "permissions": given},
        "analysis": {"ltoken": LTOKEN},
    }
    credentials: dict[str, Any] = {"users": {"limited": accounts[service]}}
    data: dict[str, Any] = {"credentials": credentials}
    if service in ("repo", "tracker", "wiki"):
        credentials["tokens"] = {TOKEN: "limited"}
    if service == "tracker":
        data["users"] = {"limited": {"displayName": "Limited"}}
    if service == "analysis":
        role = {
            "name": "Limited",
            "permissions": given,
            "status_permissions": [{"from": "Any", "to": "Any"}],
            "assignments": [{"name": "limited", "projectId": None, "group": False}],
        }
        data |= {"users": [{"name": "limited"}], "roles": [role]}
    sandbox.seed({service: data})


def play(
    sandbox: Sandbox,
    folder: Path,
    operation: Operation,
    granted: Sequence[str],
    *,
    again: bool = False,
    check: bool = False,
) -> Played:
    """Run the task with these permissions, from the state of the seeds or from that which the run
    before has left.
    """
    service = operation.service
    if not again:
        sandbox.reset()
        shutil.rmtree(folder / "RUN", ignore_errors=True)
        for name, changes in settings(operation.module).items():
            sandbox.settings(name, **changes)
        sandbox.seed(seed(operation.module))
    allow(sandbox, service, granted)
    mark = sandbox.mark()
    given = {**operation.given(sandbox.urls[service], folder), "_ansible_check_mode": check}
    result = in_process.run(operation.module, given)
    written = sandbox.requests(service, writes=True, since=mark)
    return Played(result, [one for one in written if (one["served"] or 500) < 400])


SOURCE, TARGET = "generic-snapshot-local", "generic-staging-local"
FILE = {"repo": SOURCE, "path": "agent/1.0.0/agent.txt"}
JOB = {"job": "no-parameters"}
REFUSED = "permission"
#: What may not be seen is missing, as far as the account is told; what is to be gone is gone.
UNSEEN, GONE = "not_found", ""


def needs(*permissions: str, **others: str) -> Needs:
    """What is refused without one of these, and what is missing without the others."""
    return {**dict.fromkeys(permissions, REFUSED), **others}


def reads(*permissions: str) -> Needs:
    return needs("read", *permissions)


def sees(*permissions: str) -> Needs:
    return {LOOK: REFUSED, SEE: UNSEEN, **needs(*permissions)}


EDITS = ("transition", "comment", "attach", "link")
MADE = {"key": "REL-26", "action": "created"}
EDITED = {"key": "REL-23", "action": "updated"}
OPERATIONS: dict[str, Operation] = {
    "artifact_cleanup": Operation("artifact_cleanup", needs("delete", read=UNSEEN)),
    "artifact_copy": Operation("artifact_copy", reads("deploy"), foretold=("deploy",)),
    "artifact_copy, over another": Operation(
        "artifact_copy",
        reads("deploy", "delete"),
        {
            "repo": SOURCE,
            "path": "nightly/agent/1.txt",
            "target_repo": SOURCE,
            "target_path": "nightly/agent/2.txt",
        },
        foretold=("deploy", "delete"),
    ),
    "artifact_copy, moving": Operation(
        "artifact_copy",
        reads("deploy", "delete"),
        {
            "repo": SOURCE,
            "path": "nightly/agent/",
            "target_repo": TARGET,
            "target_path": "moved",
            "move": True,
        },
        foretold=("deploy", "delete"),
    ),
    "artifact_deploy": Operation(
        "artifact_deploy",
        reads("deploy", "annotate"),
        {"repo": TARGET, "path": "new.txt", "content": "x", "properties": {"k": "v"}},
        told={"annotate": {"artifacts": [{"path": "new.txt", "action": "uploaded"}]}},
    ),
    "artifact_deploy, over another": Operation(
        "artifact_deploy", reads("deploy", "delete"), {**FILE, "content": "other"}
    ),
    "artifact_deploy, an archive": Operation(
        "artifact_deploy",
        reads("deploy", "annotate"),
        {
            "repo": TARGET,
            "path": "docs/",
            "src": "FOLDER/a.zip",
            "explode": True,
            "properties": {"k": "v"},
        },
        told={"annotate": {"artifacts": [{"path": "docs/a", "action": "exploded"}]}},
    ),
    "artifact_deploy, absent": Operation(
        "artifact_deploy", reads("delete"), {**FILE, "state": "absent"}
    ),
    "artifact_download": Operation(
        "artifact_download", reads(), {**FILE, "dest": "FOLDER/RUN/got/"}
    ),
    "artifact_properties": Operation(
        "artifact_properties", reads("annotate"), {**FILE, "properties": {"k": "v"}}
    ),
    "artifact_trash": Operation("artifact_trash", needs(ADMIN)),
    "build_promote": Operation("build_promote", reads("deploy"), foretold=("deploy",)),
    "build_publish": Operation(
        "build_publish",
        reads("deploy", "annotate"),
        told={"annotate": {"build": {"name": "agent 1", "number": "7"}}},
    ),
    "build_record": Operation("build_record", reads("delete")),
    "build_retention": Operation("build_retention", reads("delete")),
    "docker_promote": Operation("docker_promote", reads("deploy")),
    "tracker_issue": Operation(
        "tracker_issue",
        # the query is refused, and nobody for whom issues are not may have one
        {
            **needs("create", "assign", *EDITS),
            "browse": "rejected",
            "assignable": "rejected",
        },
        more={"attachments": ["FOLDER/a.txt"], "assignee": "limited"},
        told={right: {"issues": [MADE]} for right in EDITS},
    ),
    "tracker_issue, which is there": Operation(
        "tracker_issue",
        needs("edit", "assign", *EDITS, browse=UNSEEN),
        {
            "issue": "REL-23",
            "add": {"labels": ["x"]},
            "assignee": "boris",
            "status": "In Progress",
            "comment": "x",
            "attachments": ["FOLDER/a.txt"],
            "links": [{"type": "Blocks", "issue": "REL-2"}],
        },
        # before anything is written it is known that the status is out of reach
        told={right: {"issues": [EDITED]} for right in EDITS if right != "transition"},
    ),
    "tracker_version": Operation("tracker_version", needs("administer")),
    "tracker_version, released": Operation(
        "tracker_version",
        needs("administer"),
        {
            "project": "REL",
            "name": "1.1.0",
            "state": "released",
            "unresolved": "2.0.0",
            "release_date": "2026-05-31",
        },
        again=("browse",),
    ),
    "tracker_version, absent": Operation(
        "tracker_version",
        needs("administer"),
        {"project": "REL", "name": "1.1.0", "state": "absent"},
    ),
    "wiki_page": Operation("wiki_page", needs("add", view=UNSEEN)),
    "wiki_page, with all that it may have": Operation(
        "wiki_page",
        needs("add", "attach", view=UNSEEN),
        {
            "space": "REL",
            "title": "New",
            "parent_id": "1003",
            "body": "<p>x</p>",
            "labels": ["x"],
            "attachments": [{"src": "FOLDER/a.txt"}],
        },
        told={"attach": {"page": {"title": "New", "version": 1}}},
    ),
    "wiki_page, which is there": Operation(
        "wiki_page",
        needs("add", view=UNSEEN),
        {"page_id": "1002", "body": "<p>x</p>", "labels": ["x"]},
        foretold=("add",),
    ),
    "wiki_page, absent": Operation(
        "wiki_page",
        needs("delete", view=GONE),
        {"page_id": "1002", "state": "absent"},
    ),
    "wiki_tree": Operation(
        "wiki_tree",
        needs("add", "attach", view=UNSEEN),
        {"src": "FOLDER/tree", "space": "REL", "parent_id": "1003", "labels": ["x"]},
        told={"attach": {"pages": [{"path": "index.md", "action": "created"}]}},
    ),
    "ci_artifact": Operation(
        "ci_artifact", sees(), more={"dest": "FOLDER/RUN/out", "console": "FOLDER/RUN/log"}
    ),
    "ci_build_stop": Operation("ci_build_stop", sees(f"{ITEM}.Cancel")),
    "ci_job": Operation(
        "ci_job",
        sees(CREATE, EXTENDED),
        told={EXTENDED: {"job": {"name": "delivery/nightly"}}},
        complete=(EXTENDED,),
        # a job that is not there has no configuration to read
        untold=(EXTENDED,),
    ),
    "ci_job, which is there": Operation(
        "ci_job",
        {**sees(CONFIGURE, EXTENDED), SEE: "conflict"},
        {
            "job": "secret-parameters",
            "config": "<project><description>x</description></project>",
        },
        # without it the secrets in the configuration are stars
        foretold=(CONFIGURE,),
        # what may not be seen looks as what is not there
        untold=(SEE,),
    ),
    "ci_job, disabled": Operation("ci_job", sees(CONFIGURE), {**JOB, "enabled": False}),
    "ci_job, absent": Operation(
        "ci_job", {**sees(DELETE_JOB), SEE: GONE}, {**JOB, "state": "absent", "force": True}
    ),
    "ci_job, copied": Operation(
        "ci_job",
        sees(CREATE, EXTENDED, CONFIGURE),
        {"job": "delivery/copied", "copy_from": "secret-parameters"},
        foretold=(CONFIGURE,),
    ),
    "ci_job, copied without secrets": Operation(
        "ci_job",
        sees(CREATE, EXTENDED, CONFIGURE),
        {"job": "delivery/copied", "copy_from": "no-parameters"},
        told={CONFIGURE: {"job": {"name": "delivery/copied"}}},
    ),
    "ci_job, a folder": Operation(
        "ci_job",
        sees(CREATE, EXTENDED),
        {"job": "delivery/more", "folder": True},
        told={EXTENDED: {"job": {"name": "delivery/more"}}},
        complete=(EXTENDED,),
        untold=(EXTENDED,),
    ),
    "ci_job_build": Operation("ci_job_build", sees(f"{ITEM}.Build")),
    "ci_plugin": Operation(
        "ci_plugin",
        needs(ADMINISTER),
        told={ADMINISTER: {"plugins": [{"action": "unchanged"}] * 3}},
    ),
    "ci_plugin, switched": Operation(
        "ci_plugin",
        needs(ADMINISTER),
        {"plugins": [{"name": "ant", "state": "disabled"}, {"name": "git", "state": "absent"}]},
        told={ADMINISTER: {"plugins": [{"action": "unchanged"}] * 2}},
    ),
    "ci_restart": Operation("ci_restart", needs(LOOK, MANAGE)),
    "ci_script": Operation("ci_script", needs(ADMINISTER)),
    "analysis_build": Operation("analysis_build", needs("change_project_settings")),
    "analysis_config": Operation("analysis_config", needs("manage_users")),
    "analysis_config, two kinds": Operation(
        "analysis_config",
        needs("manage_users", "change_project_settings"),
        {
            "groups": [{"name": "new", "users": ["alice"]}],
            "views": [{"project": "toolchain", "name": "new", "query": "state:New"}],
        },
        told={
            "manage_users": {"applied": [{"ok": False}, {"ok": True}]},
            "change_project_settings": {"applied": [{"ok": True}, {"ok": False}]},
        },
    ),
    "analysis_defect_type": Operation("analysis_defect_type", needs("change_project_settings")),
    "analysis_group": Operation("analysis_group", needs("manage_users")),
    "analysis_issue": Operation("analysis_issue", needs("change_issue_status")),
    "analysis_module": Operation("analysis_module", needs("manage_modules")),
    "analysis_project": Operation("analysis_project", needs("create_project")),
    "analysis_role": Operation("analysis_role", needs("manage_roles")),
    "analysis_role_assignment": Operation("analysis_role_assignment", needs("assign_role")),
    "analysis_server_import": Operation("analysis_server_import", needs("manage_roles")),
    "analysis_user": Operation("analysis_user", needs("manage_users")),
    "analysis_view": Operation("analysis_view", needs("change_project_settings")),
}
