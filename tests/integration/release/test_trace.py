# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the lookup `trace`: it resolves an image, an item or a build to commits and issues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]

JOB = "delivery/toolchain"
IMAGE = "docker-staging-local/delivery/toolchain:3.1.4"
TERMS = {
    "image": IMAGE,
    "item": "docker-staging-local/delivery/toolchain/3.1.4/manifest.json",
    "build": "build:toolchain/1",
}


def variables(sandbox: Sandbox, *services: str) -> dict[str, Any]:
    """Return the connections as variables, like in group_vars."""
    return {
        f"toolchain_{service}_{option}": value
        for service in services
        for option, value in connections.connection(service, sandbox.urls[service]).items()
    }


def released() -> list[dict[str, Any]]:
    """Return tasks for a build that publishes a record and an image, and mark the image with the
    build.
    """
    build = {"job": JOB, "parameters": {"VERSION": "3.1.4"}, "poll_interval": 0.1}
    mark = {
        "repo": "docker-staging-local",
        "path": "delivery/toolchain/3.1.4/manifest.json",
        "properties": {"build.name": "toolchain", "build.number": "1"},
    }
    return [
        playbook.task("ci_job_build", build, "build"),
        playbook.task("artifact_properties", mark, "mark"),
    ]


def lookup(name: str, term: str, options: str = "") -> dict[str, Any]:
    text = f"{{{{ lookup('delivery.toolchain.trace', '{term}'{options}) | to_json }}}}"
    return {"name": name, "ansible.builtin.set_fact": {"found": text}}


def answers(run: playbook.Run) -> dict[str, Any]:
    assert run.code == 0, run.output
    found = {}
    for event in run.events:
        value = event.result.get("ansible_facts", {}).get("found")
        if value is not None:
            found[event.task] = json.loads(value) if isinstance(value, str) else value
    return found


@pytest.fixture(scope="module")
def traced(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    sandbox = fresh("real")
    tasks = [*released(), *(lookup(name, term) for name, term in TERMS.items())]
    defaults = connections.module_defaults(sandbox.urls)
    named = variables(sandbox, "repo", "ci", "tracker")
    play = playbook.play(tasks, module_defaults=defaults, vars=named)
    return answers(playbook.run(tmp_path_factory.mktemp("trace"), [play]))


@pytest.mark.parametrize("name", TERMS)
def test_every_start_leads_to_the_same_commits_and_issues(
    traced: dict[str, Any], name: str
) -> None:
    found = traced[name]
    assert found["build"]["name"] == "toolchain"
    assert (found["ci_build"]["job"], found["ci_build"]["number"]) == (JOB, 1)
    assert found["ci_build"]["result"] == "SUCCESS"
    assert [commit["id"] for commit in found["commits"]] == ["5f2b6c1d9e", "8a7d3e4f10"]
    assert found["commits"][0] == {
        "id": "5f2b6c1d9e",
        "message": "REL-1: deploy a folder in one task",
        "author": "Rhea",
        "date": "2026-01-02T03:03:20Z",
    }
    # neither UTF-8 nor NONE-1 is an issue of the tracker
    assert [issue["key"] for issue in found["issues"]] == ["REL-1", "REL-3"]
    assert found["issues"][0]["summary"] == "Deploy a folder of files in one task"


def test_image_is_identified_by_its_manifest(traced: dict[str, Any]) -> None:
    assert traced["image"]["artifact"] == traced["item"]["artifact"]
    assert traced["image"]["artifact"]["properties"]["build.number"] == ["1"]
    assert len(traced["image"]["artifact"]["sha256"]) == 64
    assert traced["build"]["artifact"] is None


def test_unknown_values_are_null(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    tasks = [
        lookup("of no build", "generic-snapshot-local/nightly/agent/keep.txt"),
        lookup("no CI", "nightly/104"),
    ]
    named = variables(sandbox, "repo")
    found = answers(playbook.run(tmp_path, [playbook.play(tasks, vars=named)]))
    assert found["of no build"]["artifact"]["path"] == "nightly/agent/keep.txt"
    of_build = {
        name: found["of no build"][name] for name in ("build", "ci_build", "commits", "issues")
    }
    assert of_build == {"build": None, "ci_build": None, "commits": None, "issues": None}
    assert found["no CI"]["build"]["name"] == "nightly"
    assert (found["no CI"]["ci_build"], found["no CI"]["commits"]) == (None, None)


#: By term: what the error says.
MISSING = {
    "artifact:generic-snapshot-local/missing.bin": "no item 'missing.bin' in the repository",
    "docker-staging-local/delivery/none:1": "no image 'delivery/none' with the tag '1'",
    "nightly/999": "reading the build 'nightly' #999",
    "nightly": "'nightly' does not name a build: write build/number",
    "build:/1": "does not name a build",
    "artifact:": "'artifact:' does not name an object: write artifact:repo/path",
    "image:docker-staging-local/x": "write repo/image:tag",
    "artifact:generic-snapshot-local": "is incomplete: write repo/path",
    f"docker-staging-local/delivery/none@sha256:{'0' * 64}": "no image 'delivery/none' with sha",
}


def test_missing_object_is_named(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    tasks = [{**lookup(term, term), "ignore_errors": True} for term in MISSING]
    play = playbook.play(tasks, vars=variables(sandbox, "repo"))
    run = playbook.run(tmp_path, [play])
    said = {term: run.event(term).result["msg"] for term in MISSING}
    assert {term: words for term, words in MISSING.items() if words not in said[term]} == {}


def test_record_of_another_server_is_not_followed(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    elsewhere = {"url": f"http://{'127.0.0.2'}:9/job/x/1/", "user": "builder"}
    wrong = f", ci={{'url': '{elsewhere['url'].removesuffix('/job/x/1/')}/base'}}"
    tasks = [*released(), lookup("asked", "build:toolchain/1", wrong)]
    defaults = connections.module_defaults(sandbox.urls)
    play = playbook.play(
        tasks, module_defaults=defaults, vars=variables(sandbox, "repo", "tracker")
    )
    run = playbook.run(tmp_path, [play])
    assert answers(run)["asked"]["ci_build"] is None
    assert "cannot read the CI build of the build record" in run.output


def test_image_names_are_equal_in_all_lookups(fresh: Fresh, tmp_path: Path) -> None:
    """The digest is that of the tag, which the first task returns."""
    sandbox = fresh("real")
    named = variables(sandbox, "repo", "ci", "tracker")
    image = "docker-release-local/delivery/agent"
    promote = {"image": f"{image}:1.0.0", "target_repo": "docker-release-local"}
    spellings = {
        "tag": "'delivery.toolchain.docker_tags', image ~ ':1.0.0'",
        "digest": "'delivery.toolchain.docker_tags', image ~ '@' ~ digest",
        "option": "'delivery.toolchain.docker_tags', 'delivery/agent', repo='docker-release-local'",
        "image": "'delivery.toolchain.docker_images', image ~ '@' ~ digest",
        "trace": "'delivery.toolchain.trace', image ~ '@' ~ digest",
        "trace tag": "'delivery.toolchain.trace', image ~ ':1.0.0@' ~ digest",
    }
    tasks = [
        {
            **playbook.task("docker_promote", {**promote, "target_image": "copy/agent:2"}, "copy"),
            "register": "copied",
        },
        *(
            {
                "name": name,
                "ansible.builtin.set_fact": {"found": f"{{{{ query({term}) | to_json }}}}"},
                "vars": {"image": image, "digest": "{{ copied.source_digest }}"},
            }
            for name, term in spellings.items()
        ),
    ]
    defaults = connections.module_defaults(sandbox.urls)
    play = playbook.play(tasks, module_defaults=defaults, vars=named)
    found = answers(playbook.run(tmp_path, [play]))
    assert [found[name] for name in ("tag", "digest", "option")] == [["1.0.0"]] * 3
    assert found["image"] == [{"name": "delivery/agent", "tags": ["1.0.0"]}]
    assert found["trace"] == found["trace tag"]
    assert found["trace"][0]["artifact"]["path"] == "delivery/agent/1.0.0/list.manifest.json"


def test_references_to_other_builds_are_followed(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    files = [{"name": "a.jar", "sha1": "0" * 40}]
    records: list[dict[str, Any]] = [
        {
            "build_name": "team/lib",
            "artifacts": files,
            "vcs": [{"url": "https://git/l", "revision": "1a"}],
        },
        {"build_name": "app", "artifacts": files, "issues": [{"key": "REL-2"}]},
        {
            "build_name": "all",
            "modules": [
                {"id": f"{name}/1", "type": "build"} for name in ("app", "team/lib", "gone")
            ],
            "vcs": [{"url": "https://git/a", "revision": "2b", "message": "REL-1"}],
        },
    ]
    tasks = [
        playbook.task("build_publish", {"build_number": "1", **record}, record["build_name"])
        for record in records
    ]
    defaults = connections.module_defaults(sandbox.urls)
    named = variables(sandbox, "repo")
    play = playbook.play(
        [*tasks, lookup("all", "build:all/1")], module_defaults=defaults, vars=named
    )
    run = playbook.run(tmp_path, [play])
    found = answers(run)["all"]
    assert [record["name"] for record in found["aggregated"]] == ["app", "team/lib"]
    assert [commit["id"] for commit in found["commits"]] == ["2b", "1a"]
    assert sorted(issue["key"] for issue in found["issues"]) == ["REL-1", "REL-2"]
    assert "refers to the build 'gone' #1, which has no build record" in run.output
