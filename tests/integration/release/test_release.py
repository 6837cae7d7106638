# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the playbook `delivery.toolchain.release` like a user: check mode, run, repetition, single
steps.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

DEMO = Path(__file__).resolve().parents[3] / "tools" / "demo.yml"
PLAYBOOK = "delivery.toolchain.release"
PROMOTED = ("Promote the builds", "Promote the container images")
RECAP = re.compile(r"^localhost\s*:\s*(?P<counts>.*)$", re.MULTILINE)
BUNDLES: dict[str, Any] = {
    "release_bundles": [
        {
            "name": "suite",
            "version": "1",
            "sources": {"bundles": [{"name": "agent", "version": "1.10.1"}]},
            "environment": "QA",
        },
        {
            "name": "suite",
            "version": "1",
            "environment": "PROD",
            "included_repositories": ["generic-release-local"],
            "distribute": True,
        },
    ]
}
#: Steps alone, and the number of their tasks that change something in the seeded sandbox.
STEPS: dict[str, tuple[dict[str, Any], int]] = {
    "build": (
        {"release_jobs": [{"job": "no-parameters"}], "release_connections": {"ci": None}},
        1,
    ),
    "several": (
        {
            "release_inputs": [{"job": "long-history", "parameters": {"TARGET": "live"}}],
            "release_builds": [{"build_name": "agent", "build_number": "12", "status": "tried"}],
            "release_analysis_roles": [
                {"name": "tester", "create_project": True, "change_issue_status": False}
            ],
            "release_analysis_modules": [
                {"project": "toolchain", "name": "a", "new_name": "b", "paths": ["**/b/*"]}
            ],
        },
        3,
    ),
    "notes": ({"release_jql": "project = REL", "release_space": "REL", "release_title": "N"}, 1),
}


@dataclass(frozen=True)
class Release:
    """Exit code, output and counts of the recap."""

    code: int
    output: str

    @property
    def counts(self) -> dict[str, int]:
        found = RECAP.search(self.output)
        assert found is not None, self.output
        pairs = (pair.split("=") for pair in found.group("counts").split())
        return {name: int(count) for name, count in pairs}

    def told(self, task: str) -> str:
        """Return the output of a task of a role or of the playbook."""
        _before, found, after = self.output.partition(f"{task}] *")
        assert found, f"'{task}' is not in\n{self.output}"
        return after.partition("\nTASK [")[0]


def release(
    folder: Path,
    variables: Mapping[str, Any],
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> Release:
    """Run the playbook with these variables. If they contain `demo`, they override the variables of
    the demo.
    """
    file = folder / "variables.json"
    file.write_text(json.dumps(variables), encoding="utf-8")
    demo = ["-e", f"@{DEMO}"] if "demo" in variables else []
    inherited = playbook.environment(folder)
    del inherited["ANSIBLE_CALLBACKS_ENABLED"]  # the recorder would write to another file
    arguments = (PLAYBOOK, *demo, "-e", f"@{file}", *arguments)
    finished = playbook.execute(arguments, folder, {**inherited, **(environment or {})})
    return Release(finished.returncode, finished.stdout)


def demo_of(sandbox: Sandbox, folder: Path) -> dict[str, Any]:
    """Return the input variables of the demo."""
    archive, documentation = folder / "toolchain.tar.gz", folder / "documentation.zip"
    archive.write_bytes(b"the archive of the release")
    with zipfile.ZipFile(documentation, "w") as file:
        file.writestr("README.md", "# Documentation\n")
    return {
        "version": "0.1.0",
        "urls": sandbox.urls,
        "archive": str(archive),
        "documentation": str(documentation),
        "documents": str(DEMO.parent / "demo_documents"),
        "fetched": str(folder / "fetched"),
    }


def withdraw(sandbox: Sandbox, folder: Path, build: Mapping[str, str]) -> None:
    promotion = {**build, "status": "withdrawn", "comment": "promoted by mistake"}
    moved = {"source_repo": "generic-release-local", "target_repo": "generic-snapshot-local"}
    task = playbook.task("build_promote", {**promotion, **moved, "copy": False}, "Withdraw")
    defaults = connections.module_defaults(sandbox.urls, repo={"dialect": "jfrog"})
    done = playbook.run(folder, [playbook.play([task], module_defaults=defaults)])
    assert done.event("Withdraw").result["changed"], done.output


def environment_of(urls: Mapping[str, str]) -> dict[str, str]:
    """Return the connections as environment variables, like a credential of AWX."""
    return {
        f"TOOLCHAIN_{service.upper()}_{option.upper()}": value
        for service, login in connections.LOGINS.items()
        for option, value in {"url": urls[service], **login}.items()
    }


@dataclass(frozen=True)
class Demo:
    """A sandbox with the release of the demo, in check mode and then done."""

    sandbox: Sandbox
    folder: Path
    variables: dict[str, Any]
    predicted: Release
    done: Release
    #: The writes of check mode.
    sent: list[dict[str, Any]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    with Sandbox.start(flavour="real") as sandbox:
        variables = {"demo": demo_of(sandbox, folder)}
        mark = sandbox.mark()
        predicted = release(folder, variables, "--check", "--diff")
        sent = sandbox.requests(writes=True, since=mark)
        done = release(folder, variables)
        yield Demo(sandbox, folder, variables, predicted, done, sent)


@pytest.mark.first
def test_release_is_predicted_on_an_empty_server(demo: Demo) -> None:
    assert demo.predicted.code == 0, demo.predicted.output
    assert demo.sent == []
    assert "[ERROR]" not in demo.predicted.output
    for task in PROMOTED:
        assert "changed: [localhost]" in demo.predicted.told(task)
    assert demo.done.code == 0, demo.done.output
    assert demo.predicted.counts["changed"] == demo.done.counts["changed"]
    for line in (
        "/ci/job/delivery/job/package/1/",
        "promoted to docker-release-local",
        "version: ",
    ):
        assert line in demo.done.told("Summarise the release")
    assert "nothing was changed" in demo.predicted.told("Summarise the release")


@pytest.mark.first
def test_repeated_release_changes_nothing(demo: Demo) -> None:
    mark = demo.sandbox.mark()
    again = release(demo.folder, demo.variables)
    assert (again.code, again.counts["changed"]) == (0, 0), again.output
    assert demo.sandbox.requests(writes=True, since=mark) == []


@pytest.mark.first
def test_withdrawn_build_with_the_number_of_a_ci_build_writes_nothing(demo: Demo) -> None:
    withdraw(demo.sandbox, demo.folder, {"build_name": "toolchain", "build_number": "1"})
    mark = demo.sandbox.mark()
    # another job of the release has no build yet, and would be started first
    jobs = [{"job": "delivery/toolchain", "parameters": {"VERSION": "0.1.0", "PUBLISH": True}}]
    variables = {**demo.variables, "release_jobs": [*jobs, {"job": "no-parameters"}]}
    for given in (demo.variables, variables):
        failed = release(demo.folder, given)
        assert failed.code == 2, failed.output
        assert "was withdrawn" in failed.output
    assert demo.sandbox.requests(writes=True, since=mark) == []


def test_release_with_moving_stages_is_predicted_and_done_once(
    fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    file = tmp_path / "app.txt"
    file.write_text("the application", encoding="utf-8")
    build = {"build_name": "app", "build_number": "1"}
    stages = {"tested": "generic-snapshot-local", "released": "generic-release-local"}
    variables: dict[str, Any] = {
        "release_repo": "generic-staging-local",
        "release_files": [{"src": str(file), "path": "app/1.0/"}],
        "release_build_publish": build,
        "release_builds": [
            {**build, "status": status, "target_repo": target, "copy": False}
            for status, target in stages.items()
        ],
    }
    environment = environment_of(sandbox.urls)
    mark = sandbox.mark()
    predicted = release(tmp_path, variables, "--check", environment=environment)
    assert (predicted.code, predicted.counts["changed"]) == (0, 3), predicted.output
    assert sandbox.requests(writes=True, since=mark) == []
    done = release(tmp_path, variables, environment=environment)
    assert (done.code, done.counts["changed"]) == (0, 3), done.output
    mark = sandbox.mark()
    by_properties = {key: variables[key] for key in variables if key != "release_build_publish"}
    marks = {"build.name": "app", "build.number": "1"}
    by_properties["release_files"] = [{**variables["release_files"][0], "properties": marks}]
    for known, arguments in ((variables, ("--check",)), (by_properties, ())):
        again = release(tmp_path, known, *arguments, environment=environment)
        assert (again.code, again.counts["changed"]) == (0, 0), again.output
    assert sandbox.requests(writes=True, since=mark) == []


NOT_PUSHED = {
    "repo": "docker-staging-local",
    "target_repo": "docker-release-local",
    "image": "delivery/nothing",
    "tag": "1",
}


@pytest.mark.parametrize(
    "entry",
    [
        {"release_builds": [{"build_name": "agent", "build_number": "999", "status": "x"}]},
        {"release_images": [NOT_PUSHED]},
        # a record that the run publishes pushes no image
        {
            "release_build_publish": {
                "build_name": "app",
                "build_number": "1",
                "artifacts": [{"repo": "generic-snapshot-local", "path": "agent/1.0.0/agent.txt"}],
            },
            "release_images": [NOT_PUSHED],
        },
    ],
)
def test_objects_not_created_by_the_release_must_exist(
    fresh: Fresh, tmp_path: Path, entry: dict[str, Any]
) -> None:
    urls = fresh("real").urls
    failed = release(tmp_path, entry, "--check", environment=environment_of(urls))
    assert failed.code != 0, failed.output
    assert "not_found" in failed.output


def test_release_bundle_is_created_once(fresh: Fresh, tmp_path: Path) -> None:
    environment = environment_of(fresh("real").urls)
    for arguments, changed in ((("--check",), 3), ((), 3), ((), 0)):
        done = release(tmp_path, BUNDLES, *arguments, environment=environment)
        assert (done.code, done.counts["changed"]) == (0, changed), done.output


@pytest.mark.parametrize("step", STEPS)
def test_single_step_uses_connections_of_the_environment(
    fresh: Fresh, tmp_path: Path, step: str
) -> None:
    variables, changed = STEPS[step]
    urls = fresh("real").urls
    done = release(tmp_path, variables, environment=environment_of(urls))
    assert done.code == 0, done.output
    assert done.counts["changed"] == changed, done.output
    logins = connections.LOGINS.values()
    assert not [
        secret for login in logins for secret in connections.secrets(login) if secret in done.output
    ]


UNANSWERED = dict.fromkeys(
    (
        *("release_connections", "release_jobs", "release_repo", "release_files"),
        *("release_builds", "release_images", "release_jql", "release_title"),
        *("release_analysis_roles", "release_analysis_modules"),
    ),
    "",
)
SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "The playbook release has nothing to do"),
    "an unanswered survey": (UNANSWERED, "The playbook release has nothing to do"),
    "a misspelt step": (
        {"release_job": [{"job": "no-parameters"}]},
        "release_job (did you mean release_jobs?)",
    ),
    "an unknown service": (
        {"release_jql": "project = REL", "release_connections": {"artifactory": {}}},
        "release_connections has no service artifactory",
    ),
}


@pytest.mark.parametrize("what", SLIPS)
def test_invalid_input_fails_before_any_request(fresh: Fresh, tmp_path: Path, what: str) -> None:
    variables, words = SLIPS[what]
    sandbox = fresh("real")
    failed = release(tmp_path, variables, environment=environment_of(sandbox.urls))
    assert failed.code == 2, failed.output
    assert words in failed.output
    assert not any(sandbox.requests(service) for service in sandbox.urls)


def test_every_module_option_is_passed() -> None:
    (play,) = yaml.safe_load((DEMO.parents[1] / "playbooks" / "release.yml").read_text("utf-8"))
    used = []
    for task in play["tasks"]:
        name = next((name for name in task if "." in name), "block")
        if name.startswith("delivery.toolchain.") and not name.endswith(".bookkeeping"):
            module = name.rpartition(".")[2]
            used.append(module)
            options = yaml.safe_load(playbook.documentation(module, "DOCUMENTATION"))["options"]
            # a gate checks a project, not a single issue
            assert set(task[name]) == set(options) - {"id"}, module
    assert len(used) == 7
