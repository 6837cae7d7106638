# SPDX-License-Identifier: GPL-3.0-or-later
"""Property test of sealed plans for each module that `enforce` runs: random states of the server,
random desired states, and random changes between the plan and its application.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import kinds
from sandbox.client import Sandbox
from tests.helpers import connections, in_process

Fresh = Callable[[str], Sandbox]
Arguments = dict[str, Any]
#: The variants of some objects: 0 is an object that is missing.
State = Mapping[int, int]

ROOT = Path(__file__).resolve().parents[3]
LOGINS: dict[str, Arguments] = {
    "repo": {"token": "repo-admin-token-1234567890", "dialect": "jfrog"}
}
SALT = {"salt": "salt"}
SNAPSHOTS = "generic-snapshot-local"
FILES = "nightly/sealed"


class Subject:
    """A module, and how to bring its server into a state."""

    def __init__(
        self,
        module: str,
        service: str,
        wanted: Callable[[State, Path], list[Arguments]],
        change: Callable[[State, Path], list[tuple[str, Arguments]]] | None = None,
        variants: int = 3,
    ) -> None:
        self.module, self.service, self.variants = module, service, variants
        self._wanted, self._change = wanted, change

    def wanted(self, state: State, folder: Path) -> list[Arguments]:
        """Return the arguments of the module for a desired state."""
        return self._wanted(state, folder)

    def change(self, state: State, folder: Path) -> list[tuple[str, Arguments]]:
        """Return modules with their arguments that bring the server into a state."""
        if self._change is None:
            return [(self.module, given) for given in self._wanted(state, folder)]
        return self._change(state, folder)


def listed(
    module: str,
    service: str,
    name: Callable[[int], Arguments],
    value: Callable[[int], Arguments],
    *,
    at_once: bool = True,
    variants: int = 3,
) -> Subject:
    """Return a module with the option `entries`, or that takes an object a task."""

    def wanted(state: State, _folder: Path) -> list[Arguments]:
        entries = [
            {**name(n), **(value(variant) if variant else {"state": "absent"})}
            for n, variant in state.items()
        ]
        return [{"entries": entries}] if at_once else entries

    return Subject(module, service, wanted, variants=variants)


def version_of(value: int) -> Arguments:
    return {"description": f"variant {value}"}


def job_of(value: int) -> Arguments:
    return {"config": f"<project><description>{value}</description></project>"}


def permission_of(value: int) -> Arguments:
    users = {"deployer": ["read", "write"][:value]}
    return {"resources": {"artifact": {"targets": [{"repo": SNAPSHOTS}], "users": users}}}


def groups(state: State, _folder: Path) -> list[Arguments]:
    found = [
        {"name": f"sealed {n}", **({"users": users[variant]} if variant else {"state": "absent"})}
        for n, variant in state.items()
        for users in [{1: ["alice"], 2: ["bob"], 3: ["alice", "bob"]}]
    ]
    return [{"groups": found, "allow_empty": ["groups"]}]


def plugins(state: State, _folder: Path) -> list[Arguments]:
    names = ("ant", "timestamper", "workflow-aggregator")
    states = (("disabled", "enabled"), ("absent", "present"), ("disabled", "enabled"))
    found = [{"name": names[n], "state": states[n][variant]} for n, variant in state.items()]
    return [{"plugins": found, "poll_interval": 0.01}]


def project_roles(state: State, _folder: Path) -> list[Arguments]:
    names = ("Administrators", "Developers")
    users: tuple[list[str], ...] = ([], ["alice"], ["alice", "boris"], ["boris"])
    entries = [
        {"project": "REL", "role": names[n], "users": ["reporter", *users[variant]]}
        for n, variant in state.items()
        if n < len(names)
    ]
    return [{"entries": entries}] if entries else []


def configuration(state: State, _folder: Path) -> list[Arguments]:
    return [{"config": {"jenkins": {"systemMessage": f"variant {sum(state.values())}"}}}]


def cleanup(_state: State, _folder: Path) -> list[Arguments]:
    return [{"rules": [{"repo": SNAPSHOTS, "path": FILES}]}]


def trash(_state: State, _folder: Path) -> list[Arguments]:
    return [{"state": "empty"}]


def files(state: State, folder: Path) -> list[tuple[str, Arguments]]:
    """Deploy files to two repositories."""
    found = []
    for n, variant in state.items():
        (folder / f"{n}-{variant}").write_text("x" * (variant + 1), encoding="utf-8")
        place = {"repo": (SNAPSHOTS, "generic-staging-local")[n % 2], "path": f"{FILES}/{n}"}
        found.append(("artifact_deploy", {**place, "src": str(folder / f"{n}-{variant}")}))
    return found


def discarded(state: State, folder: Path) -> list[tuple[str, Arguments]]:
    """Deploy files to two repositories, and delete some of them."""
    rules = [
        {"repo": given["repo"], "path": FILES, "name": given["path"].rpartition("/")[2]}
        for _module, given in files(state, folder)
    ]
    return [*files(state, folder), ("artifact_cleanup", {"rules": rules})]


def retention(_state: State, _folder: Path) -> list[Arguments]:
    return [{"build_name": "nightly", "count": 3}]


def builds(state: State, _folder: Path) -> list[tuple[str, Arguments]]:
    """Publish builds between those that are there."""
    artifacts = [{"repo": SNAPSHOTS, "path": "agent/1.0.0/agent.txt"}]
    return [
        (
            "build_publish",
            {
                "build_name": "nightly",
                "build_number": f"{n}.{variant}",
                "started": f"202{5 + n % 2}-0{variant + 1}-0{n + 1}T00:00:00.000+0000",
                "artifacts": artifacts,
            },
        )
        for n, variant in state.items()
    ]


def pages(state: State, folder: Path) -> list[Arguments]:
    """Return a tree with a chapter per object, which has a page below it."""
    root = folder / str(abs(hash(tuple(state.items()))))
    root.mkdir(exist_ok=True)
    (root / "index.md").write_text("# Sealed\n", encoding="utf-8")
    for n, variant in state.items():
        if variant:
            (root / f"{n}").mkdir(exist_ok=True)
            (root / f"{n}/index.md").write_text(f"# Chapter {n}\n\n{variant}\n", encoding="utf-8")
            (root / f"{n}/a.md").write_text(f"# Page {n}\n\n{variant // 2}\n", encoding="utf-8")
    return [{"src": str(root), "space": "REL", "parent_id": "1003", "prune": True}]


def script(state: State, _folder: Path) -> list[Arguments]:
    location = "jenkins.model.JenkinsLocationConfiguration"
    address = f"admin-{sum(state.values())}@example.com"
    return [
        {
            "unless": f"import {location}\n{location}.get().adminAddress == args.address",
            "script": f"import {location}\n{location}.get().setAdminAddress(args.address)",
            "arguments": {"address": address},
        }
    ]


SUBJECTS = {
    subject.module: subject
    for subject in (
        listed(
            "repo_repository",
            "repo",
            lambda n: {"key": f"sealed-{n}"},
            lambda value: {"rclass": "local", "package_type": "generic", **version_of(value)},
        ),
        listed("repo_group", "repo", lambda n: {"name": f"sealed-{n}"}, version_of),
        listed(
            "repo_user",
            "repo",
            lambda n: {"name": f"sealed-{n}"},
            lambda value: {"email": f"v{value}@example.org", "user_password": "Secret-1234"},
        ),
        listed(
            "repo_permission", "repo", lambda n: {"name": f"sealed {n}"}, permission_of, variants=2
        ),
        listed("ci_job", "ci", lambda n: {"job": f"sealed-{n}"}, job_of, at_once=False),
        listed(
            "ci_credential",
            "ci",
            lambda n: {"id": f"sealed-{n}"},
            lambda value: {"kind": "secret_text", "secret": f"a-secret-{value}-1234567890"},
        ),
        listed(
            "ci_node",
            "ci",
            lambda n: {"name": f"sealed-{n}"},
            lambda value: {"remote_root": "/srv", **version_of(value)},
        ),
        listed("ci_view", "ci", lambda n: {"name": f"Sealed {n}"}, version_of),
        listed(
            "tracker_version",
            "tracker",
            lambda n: {"project": "REL", "name": f"7.{n}"},
            version_of,
            at_once=False,
        ),
        listed(
            "tracker_component",
            "tracker",
            lambda n: {"project": "REL", "name": f"sealed-{n}"},
            version_of,
        ),
        Subject("tracker_project_role", "tracker", project_roles),
        listed(
            "wiki_space",
            "wiki",
            lambda n: {"key": f"SEAL{n}"},
            lambda value: {"name": f"variant {value}"},
        ),
        listed(
            "wiki_page",
            "wiki",
            lambda n: {"space": "REL", "title": f"Sealed {n}"},
            lambda value: {"body": f"<p>{value}</p>"},
            at_once=False,
        ),
        Subject("wiki_tree", "wiki", pages),
        listed(
            "wiki_restriction",
            "wiki",
            lambda n: {"space": "REL", "title": ("Handbook", "Release notes", "Releases")[n]},
            lambda value: {"update": {"users": ["reporter", "reader", "author"][:value]}},
        ),
        Subject("analysis_config", "analysis", groups),
        Subject("ci_plugin", "ci", plugins, variants=1),
        Subject("ci_configuration", "ci", configuration),
        Subject("ci_script", "ci", script),
        Subject("artifact_cleanup", "repo", cleanup, files),
        Subject("artifact_trash", "repo", trash, discarded),
        Subject("build_retention", "repo", retention, builds),
    )
}


class Run:
    """The module of a subject on a sandbox, in this process."""

    def __init__(self, subject: Subject, sandbox: Sandbox, folder: Path) -> None:
        self._subject, self._sandbox, self._folder = subject, sandbox, folder
        url = sandbox.urls[subject.service]
        more = LOGINS.get(subject.service, {})
        self._login = connections.connection(subject.service, url, **more)

    def change(self, state: State) -> None:
        for module, given in self._subject.change(state, self._folder):
            result = in_process.run(module, {**given, **self._login})
            assert not result.get("failed"), result["msg"]

    def drift(self, state: State) -> list[str]:
        """Return the digests of what differs from the desired state."""
        results = self._run(state, {**SALT}, check=True)
        assert [result["msg"] for result in results if result.get("failed")] == []
        return _digests(results)

    def enforce(self, state: State, plan: Iterable[str], rest: str) -> tuple[list[Any], int]:
        """Return the results with a sealed plan, and the number of writes."""
        mark = self._sandbox.mark()
        results = self._run(state, {**SALT, "writes": list(plan), "rest": rest})
        log = self._sandbox.requests(self._subject.service, since=mark, writes=True)
        return results, len(log)

    def _run(self, state: State, sealed: Mapping[str, Any], *, check: bool = False) -> list[Any]:
        internal = {"_ansible_check_mode": check, "_toolchain_sealed": sealed}
        return [
            in_process.run(self._subject.module, {**given, **self._login, **internal})
            for given in self._subject.wanted(state, self._folder)
        ]


def _digests(results: Iterable[Mapping[str, Any]]) -> list[str]:
    objects = [each for result in results for each in result["findings"]]
    assert [each for each in objects if "action" in each and not each.get("digests")] == []
    found = [digest for each in objects for digest in each.get("digests", [])]
    assert len(found) == len(set(found))
    return found


def _state(choice: random.Random, subject: Subject, most: int = 3) -> dict[int, int]:
    numbers = choice.sample(range(3), choice.randint(1, most))
    return {n: choice.randint(0, subject.variants) for n in sorted(numbers)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("module", SUBJECTS)
def test_only_approved_changes_are_written(
    module: str, seed: int, fresh: Fresh, tmp_path: Path
) -> None:
    choice, subject = random.Random(f"{module} {seed}"), SUBJECTS[module]
    run = Run(subject, fresh("real"), tmp_path)
    run.change(_state(choice, subject))
    wanted = _state(choice, subject)
    plan = run.drift(wanted)
    if seed:
        run.change(_state(choice, subject, min(seed, 3)))
    now = run.drift(wanted)
    stale = set(now) - set(plan)
    # what is new in the trash may come from the run: it is left out, and is not a conflict
    if stale and module != "artifact_trash":
        results, writes = run.enforce(wanted, plan, "fail")
        refused = [result for result in results if result.get("failed")]
        assert {result["error"]["kind"] for result in refused} == {"conflict"}
        # a task has all of its changes, or none
        assert writes == 0 or len(results) > 1
        now = run.drift(wanted)
    results, writes = run.enforce(wanted, plan, "skip")
    assert [result["msg"] for result in results if result.get("failed")] == []
    assert (writes > 0) is any(result["changed"] for result in results)
    skipped = sum(len(result.get("plan_skipped", [])) for result in results)
    left = set(run.drift(wanted))
    if module == "wiki_tree":  # pages that need a page that was left out are left out, too
        assert len(left) == skipped >= len(stale)
    else:
        assert (left, skipped) == (stale, len(stale))
    if not stale:
        assert left == set()


def test_every_module_of_the_roles_is_tested() -> None:
    modules = {kind.module for kind in kinds.KINDS if kind.module}
    for role in ("analysis_config", "ci_baseline", "repo_housekeeping"):
        for file in (ROOT / "roles" / role / "tasks").glob("*.yml"):
            for task in yaml.safe_load(file.read_text("utf-8")):
                names = {name.removeprefix("delivery.toolchain.") for name in _calls(task)}
                modules |= names
    # they contact no server, only read, or the write follows from others
    assert modules - SUBJECTS.keys() <= {"bookkeeping", "ci_plugin_info", "ci_restart"}


def _calls(task: Mapping[str, Any]) -> list[str]:
    inner = [each for part in ("block", "rescue", "always") for each in task.get(part, [])]
    own = [name for name in task if name.startswith("delivery.toolchain.")]
    return own + [name for each in inner for name in _calls(each)]
