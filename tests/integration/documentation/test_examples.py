# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the examples of every module, lookup and filter with the sandbox, in order."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.helpers.cases import CASES
from tests.helpers.selection import parameters

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
EXAMPLES = [
    (kind, path.stem)
    for kind in ("modules", "lookup", "filter")
    for path in sorted((PLUGINS / kind).glob("*.py"))
    if not path.stem.startswith("_")
]
OPTIONS = {"repo": {"dialect": "jfrog"}}
#: Files that the examples of a lookup read.
FILES = {
    "desired_state": {
        "desired/tracker.yml": "versions: [{project: REL, name: 1.0.0}]\n",
        "desired/environments/production/tracker.yml": "versions: [{project: REL, name: 1.0.1}]\n",
    },
    "unmanaged": {
        "desired/tracker.yml": "versions: [{project: REL, name: 1.0.0}]\n",
        "exported/tracker.yml": "versions: [{project: REL, name: 1.0.1}]\n",
    },
    "drift_reports": {"reports/production/report.json": "{}"},
}
#: Objects of the sandbox that the examples of a module need in addition.
STAGED = {
    "name": "agent",
    "number": "13",
    "statuses": [{"status": "staged", "timestamp": "2026-01-02T03:04:05.678+0000"}],
}
SEEDS: dict[str, Any] = {
    "build_promote": {
        "repo": {
            "builds": [
                {
                    "name": "product",
                    "number": "5",
                    "modules": [{"id": "agent/12", "type": "build"}],
                },
                STAGED,
            ]
        }
    },
    "docker_promote": {
        "repo": {
            "builds": [STAGED],
            "images": [
                {
                    "repo": "docker-staging-local",
                    "image": "delivery/console",
                    "tag": "2.0.0",
                    "content": "{}",
                    "properties": {"build.name": ["agent"], "build.number": ["13"]},
                }
            ],
        }
    },
    "release_bundle_promote": {
        "repo": {
            "bundles": [
                {
                    "name": "agent",
                    "version": "1.10.0",
                    "files": ["generic-snapshot-local/agent/1.0.0/agent.txt"],
                    "promotions": [{"environment": "QA", "created": 1767323045678}],
                }
            ]
        }
    },
}
TEXTS = {
    ".xml": "<p>Written for an example.</p>",
    ".html": "<p>Written for an example.</p>",
    ".groovy": "println 'example'",
}


def _sources(value: Any) -> Iterator[str]:
    """Yield all values of `src` in the arguments of a task."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "src" and isinstance(inner, str):
                yield inner
            else:
                yield from _sources(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _sources(inner)


def _make(folder: Path, source: str) -> None:
    """Create the source of an example: a folder, an archive or a file next to the playbook."""
    path = folder / source.replace("{{ playbook_dir }}/", "").replace("*", "example")
    assert path.is_relative_to(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    if source.endswith("/"):
        (path / "inner").mkdir(parents=True)
        (path / "inner" / "one.txt").write_text("one\n", encoding="utf-8")
        (path / "two.txt").write_text("two\n", encoding="utf-8")
        (path / "index.md").write_text("# Example\n", encoding="utf-8")
    elif source.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner/one.txt", "one\n")
    elif source.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(path, "w:gz" if source.endswith("gz") else "w") as archive:
            member = tarfile.TarInfo("inner/one.txt")
            member.size = 4
            archive.addfile(member, io.BytesIO(b"one\n"))
    else:
        path.write_text(TEXTS.get(path.suffix, "example\n"), encoding="utf-8")


def _environment(urls: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables with the connections of lookups."""
    return {
        f"TOOLCHAIN_{service.upper()}_{option.upper()}": value
        for service, login in connections.LOGINS.items()
        for option, value in {"url": urls[service], **login, **OPTIONS.get(service, {})}.items()
    }


def _options(case: Mapping[str, Any]) -> dict[str, Any]:
    return {**OPTIONS.get(case["service"], {}), **case.get("login", {})}


def _play(kind: str, name: str, folder: Path, urls: Mapping[str, str]) -> dict[str, Any]:
    """Create the files of a plugin's examples. Return their play, which starts from the seeds."""
    examples = yaml.safe_load(playbook.documentation(name, "EXAMPLES", kind))
    assert examples
    for number, task in enumerate(examples):
        assert task["name"]
        for source in _sources(task):
            _make(folder, source)
        task["name"] = f"{number} {task['name']}"
        # a failure must not stop the plays of other plugins in the same command
        task["ignore_errors"] = True
    examples[0]["vars"] = {
        **examples[0].get("vars", {}),
        "sandbox_reset": {},
        "sandbox_seed": SEEDS.get(name, {}),
    }
    for file, text in FILES.get(name, {}).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    # examples use the login of the module's contract case
    case = CASES.get(name, {}) if kind == "modules" else {}
    options = {**OPTIONS, **({case["service"]: _options(case)} if "service" in case else {})}
    defaults = connections.module_defaults(urls, **options)
    return playbook.play(examples, module_defaults=defaults)


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    fresh: Callable[[str], Sandbox],
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, playbook.Run]:
    """Run the examples of all selected plugins in one command."""
    sandbox, folder = fresh("real"), tmp_path_factory.mktemp("examples")
    wanted = parameters(request.session, "name")
    plays = {}
    for kind, name in EXAMPLES:
        if name in wanted:
            (folder / f"{kind} {name}").mkdir()
            plays[f"{kind} {name}"] = _play(kind, name, folder / f"{kind} {name}", sandbox.urls)
    return playbook.run_each(
        folder,
        plays,
        controls={"localhost": sandbox.control},
        arguments=["-vv", "--diff"],
        variables=_environment(sandbox.urls),
    )


@pytest.mark.parametrize(("kind", "name"), EXAMPLES)
def test_example_runs(runs: Mapping[str, playbook.Run], kind: str, name: str) -> None:
    run = runs[f"{kind} {name}"]
    examples = yaml.safe_load(playbook.documentation(name, "EXAMPLES", kind))
    assert run.code == 0, run.output
    assert [event.status for event in run.events] == ["ok"] * len(examples), run.output
    assert "[WARNING]: Collection" not in run.output
    assert "DEPRECATION" not in run.output


@pytest.mark.parametrize("name", [name for kind, name in EXAMPLES if kind == "modules"])
def test_example_of_a_module_uses_it(name: str) -> None:
    tasks = yaml.safe_load(playbook.documentation(name, "EXAMPLES"))
    assert all(f"{playbook.NAMESPACE}.{name}" in task for task in tasks)
