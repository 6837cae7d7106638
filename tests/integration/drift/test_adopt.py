# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a team can adopt its servers: after an export only edits are drift, each is one finding,
and enforce brings the servers back.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, in_process, playbook
from tests.helpers.cases import CASES
from tests.helpers.edits import EMPTY, FILLED, FOUND

#: A line of a difference that was removed or added.
SIGN = re.compile(r"[+-](?![+-])")
Fresh = Callable[[str], Sandbox]
#: An edit by hand: module, options, and what the finding must show before and after.
Edit = tuple[str, dict[str, Any], str, Any, Any]

KINDS = (
    *("group", "job", "credential", "node", "view", "repository", "access-group"),
    *("version", "component", "page", "restriction"),
)
_EACH = 2
#: Names that only one kind has.
NAMES = {kind: [f"{kind}-{number:03}" for number in range(_EACH)] for kind in KINDS}
JOB = "<project><description>{}</description><builders/></project>"
CREDENTIAL = """<com.cloudbees.plugins.credentials.impl.UsernamePasswordCredentialsImpl>
<scope>GLOBAL</scope><id>{}</id><description>seed</description><username>u</username>
<password>seed-password</password>
</com.cloudbees.plugins.credentials.impl.UsernamePasswordCredentialsImpl>"""
ADMIN = "repo-admin-token-1234567890"
#: Two objects of each kind, in addition to the default seeds.
OBJECTS: dict[str, Any] = {
    "analysis": {"groups": [{"name": name, "users": ["alice"]} for name in NAMES["group"]]},
    "ci": {
        "jobs": {name: {"kind": "freestyle", "description": "seed"} for name in NAMES["job"]},
        "stored_credentials": [{"config": CREDENTIAL.format(name)} for name in NAMES["credential"]],
        "nodes": [{"name": name, "label": "seed"} for name in NAMES["node"]],
        "views": [{"name": name, "description": "seed"} for name in NAMES["view"]],
    },
    "repo": {
        "repositories": [
            {"key": name, "type": "LOCAL", "packageType": "generic", "description": "seed"}
            for name in NAMES["repository"]
        ],
        "groups": [{"name": name, "description": "seed"} for name in NAMES["access-group"]],
    },
    "tracker": {
        "versions": {"REL": {name: {"description": "seed"} for name in NAMES["version"]}},
        "components": {"REL": {name: {"description": "seed"} for name in NAMES["component"]}},
    },
    "wiki": {
        "pages": [
            {"id": str(5000 + number), "space": "REL", "title": name, "parent": "1002"}
            | {"body": "<p>seed</p>", "restrictions": {"update": ["reporter", "author"]}}
            for number, name in enumerate([*NAMES["page"], *NAMES["restriction"]])
        ]
    },
}


def _edit(kind: str, name: str, text: str) -> Edit:
    label = text.replace(" ", "-")
    edits: dict[str, Edit] = {
        "group": ("analysis_group", {"name": name, "users": ["bob"]}, name, "alice", "bob"),
        "job": ("ci_job", {"job": name, "config": JOB.format(text)}, name, "seed", text),
        "credential": (
            "ci_credential",
            {"id": name, "description": text, "login_password": "seed-password"},
            name,
            "seed",
            text,
        ),
        "node": ("ci_node", {"name": name, "labels": [label]}, name, "seed", label),
        "view": ("ci_view", {"name": name, "description": text}, name, "seed", text),
        "repository": ("repo_repository", {"key": name, "description": text}, name, "seed", text),
        "access-group": ("repo_group", {"name": name, "description": text}, name, "seed", text),
        "version": (
            "tracker_version",
            {"project": "REL", "name": name, "description": text},
            f"REL/{name}",
            "seed",
            text,
        ),
        "component": (
            "tracker_component",
            {"project": "REL", "name": name, "description": text},
            f"REL/{name}",
            "seed",
            text,
        ),
        "page": (
            "wiki_page",
            {"space": "REL", "title": name, "body": f"<p>{text}</p>"},
            f"REL/{name}",
            "seed",
            text,
        ),
        "restriction": (
            "wiki_restriction",
            {"space": "REL", "title": name, "update": {"users": ["reporter", "reader"]}},
            f"REL/{name}",
            "author",
            "reader",
        ),
    }
    return edits[kind]


#: The exported trees have one space.
SPACE: Edit = ("wiki_space", {"key": "REL", "name": "By hand"}, "REL", "Releases", "By hand")


def _edits(seed: int) -> list[Edit]:
    """Return edits of one object of each kind."""
    chance = random.Random(seed)
    objects = [(kind, chance.choice(NAMES[kind])) for kind in KINDS]
    edits = [_edit(*one, f"edit {seed}-{index}") for index, one in enumerate(objects)]
    message = {"jenkins": {"systemMessage": f"edit {seed}"}}
    return [
        *edits,
        ("ci_configuration", {"config": message}, "jenkins", "Delivery", f"edit {seed}"),
    ]


class Servers:
    """The servers of a team, with the folder that describes them."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._folder = folder
        self._logins = {
            name: connections.connection(name, url) for name, url in sandbox.urls.items()
        }
        self._logins["repo"]["token"] = ADMIN

    def export(self) -> None:
        """Export in this process: `test_exported_state_has_no_drift` runs the playbook."""
        options: dict[str, dict[str, Any]] = {
            "ci": {"jobs": [*NAMES["job"], "plain"]},
            "wiki": {"trees": [{"space": "REL"}]},
        }
        for service in self._logins:
            place = {"dest": str(self._folder / "state")}
            assert self.changes(f"{service}_export", {**place, **options.get(service, {})})

    def add_secrets(self) -> None:
        """Write the secrets of the credentials, which no export has, as differences."""
        entries = [
            {"id": name, "login_password": {"from": "login"}} for name in NAMES["credential"]
        ]
        folder = self._folder / "state/environments/own"
        folder.mkdir(parents=True)
        (folder / "ci.yml").write_text(json.dumps({"credentials": entries}), "utf-8")

    def apply(self, name: str) -> dict[str, Any]:
        """Run drift or enforce; return the report."""
        variables = {
            "desired_state_folder": "state",
            "desired_state_environment": "own",
            "login": "seed-password",
            "enforce_connections": self._logins,
            "drift_report": name,
            "drift_who": True,
        }
        self._run({"import_playbook": f"delivery.toolchain.{name}", "vars": variables})
        report = (self._folder / name / "report.json").read_text("utf-8")
        found: dict[str, Any] = json.loads(report)
        return found

    def commit(self) -> None:
        """Put the folder under Git, with everything committed."""
        for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -qm export"):
            subprocess.run(["git", *command.split()], cwd=self._folder / "state", check=True)

    def adopt(self, findings: Sequence[Any], into: str, error: str = "") -> str:
        """Adopt findings of the last drift, and return what has changed in the YAML files.

        :param error: words of the error with which the run ends, "" for none
        """
        variables = {
            "desired_state_folder": "state",
            "desired_state_environment": "own",
            "adopt_connections": self._logins,
            "adopt_report": "drift",
            "adopt_findings": findings,
            "adopt_into": into,
        }
        play = {"import_playbook": "delivery.toolchain.adopt", "vars": variables}
        run = playbook.run(self._folder, [play], seconds=900)
        assert (run.code != 0, error in run.output) == (bool(error), True), run.output
        git = ["git", "diff", "--unified=0", "--no-prefix", "*.yml", ":!environments"]
        return subprocess.run(
            git, cwd=self._folder / "state", check=True, capture_output=True, text=True
        ).stdout

    def changes(self, module: str, options: dict[str, Any], **internal: Any) -> bool:
        """Run a module in this process; return whether it has changed its object."""
        login = self._logins[CASES[module]["service"]]
        result = in_process.run(module, {**options, **login, **internal})
        assert not result.get("failed"), result
        return bool(result["changed"])

    def _run(self, play: dict[str, Any]) -> None:
        run = playbook.run(self._folder, [play], seconds=900)
        assert run.code == 0, run.output


def compared(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings without the secrets of credentials that have no record."""
    return [finding for finding in report["findings"] if finding["status"] != "unknown"]


@pytest.mark.parametrize("seed", [20261124])
def test_adopted_state_is_edited_and_enforced(seed: int, fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    sandbox.seed(OBJECTS)
    servers = Servers(sandbox, tmp_path)
    assert all(servers.changes(*one) for one in EMPTY)
    servers.export()
    servers.add_secrets()
    edits = [*_edits(seed), SPACE]
    by_hand = [*((module, options) for module, options, *_finding in edits), *FILLED]
    for one in by_hand:
        assert servers.changes(*one), one
    report = servers.apply("drift")
    # one credential is edited
    assert report["counts"]["unknown"] == len(NAMES["credential"]) - 1
    assert report["counts"]["ok"] >= sum(map(len, NAMES.values())) - len(edits)
    texts = {finding["text"] for finding in report["findings"]}
    assert texts >= FOUND
    found = {one["name"]: one for one in compared(report) if one["text"] not in FOUND}
    # the other object of each kind, and all seeds, are as exported
    assert sorted(found) == sorted({name for _module, _options, name, *_sides in edits})
    for _module, _options, name, before, after in edits:
        # the finding shows the server before, the folder after
        assert after in str(found[name]["before"]), found[name]
        assert before in str(found[name]["after"]), found[name]
    # only the wiki says who changed an object last
    known = {one["name"]: one["changed_by"] for one in report["findings"] if one.get("changed_at")}
    pages = {f"REL/{options['title']}" for module, options in by_hand if module == "wiki_page"}
    assert (set(known), "" in known.values()) == (pages, False)

    # there are two objects of each kind: adopt takes the first, and enforce restores the second
    adopted = [*edits[0:-2:2], SPACE]
    servers.commit()
    chosen = [{"name": edit[2]} for edit in adopted]
    # a page of a tree has one file for all environments; that stops no other finding
    page = {"kind": "page", "name": f"REL/{edits[9][2].partition('/')[2]}"}
    servers.adopt([page, *chosen[::2]], "environment", "is for all environments")
    patch = servers.adopt(chosen[1::2], "base")
    changed = [line for line in patch.splitlines() if SIGN.match(line)]
    # one line each; those of the other kinds are in files of their own
    kinds = ("analysis_group", "repo_", "tracker_", "wiki_r", "wiki_space", "ci_credential")
    listed = [edit for edit in adopted[1::2] if edit[0].startswith(kinds)]
    assert len(changed) == 2 * len(listed), changed
    for _module, _options, _name, _before, after in listed:
        assert any(line[0] == "+" and after in line for line in changed), changed
    counts = servers.apply("enforce")["counts"]
    assert counts["failed"] == 0
    # the same edits would change what was restored, and only that
    for module, options in by_hand:
        kept = any(edit[:2] == (module, options) for edit in adopted)
        assert servers.changes(module, options, _ansible_check_mode=True) is not kept, options
