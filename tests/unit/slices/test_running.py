# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices that are run, lost and run again; what each of them is sent, and that nothing stays."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices import merging
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.packing import (
    Package,
    Slice,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.running import (
    Runner,
    SlicedRun,
    forward,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.units import (
    Description,
    deal,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.workers import (
    SlicesError,
    Worker,
)

ONE, TWO = Worker("ssh", "one"), Worker("ssh", "two")
#: A worker, what it was sent, and what it says: the status of its command, and its words.
Behaviour = Callable[[Worker, dict[str, Any]], tuple[int, str]]


def sent(folder: Path) -> dict[str, Any]:
    """The hosts of an inventory, with their variables; C(!unsafe) is read as the text it marks."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!unsafe", lambda loader, node: f"literal {node.value}")
    text = (folder / "inventory/hosts.yml").read_text("utf-8")
    every = yaml.load(text, Loader)["all"]
    assert every["vars"].pop("ansible_connection") == "local"
    assert every["vars"].pop("ansible_python_interpreter") == "{{ ansible_playbook_python }}"
    return {host: {**every["vars"], **own} for host, own in every["hosts"].items()}


def done(folder: Path, hosts: dict[str, Any]) -> None:
    """Bring back what a slice would: an object for each host."""
    results = folder / "artifacts" / "slice"
    results.mkdir(parents=True)
    objects = [{"host": host, "status": "ok", "text": "as wanted"} for host in hosts]
    text = json.dumps({"objects": objects, "warnings": ["told once"]})
    (results / "objects.json").write_text(text, encoding="utf-8")


class Stage:
    """Runs hosts on workers that behave as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour) -> None:
        self.told: list[str] = []
        self.runs: list[tuple[str, list[str]]] = []
        self.folders: list[Path] = []

        def stream(runner: Runner, worker: Worker, folder: Path, there: str) -> tuple[int, str]:
            hosts = sent(folder)
            self.runs.append((str(worker), list(hosts)))
            self.folders.append(folder)
            status, words = behaviour(worker, hosts)
            if not words:
                done(folder, hosts)
            return status, words

        monkeypatch.setattr(Runner, "_stream", stream)

    def run(
        self, hosts: str, *workers: Worker, writes: bool = False, **variables: Any
    ) -> list[dict[str, Any]]:
        described = {host: Description(["ci_baseline"], variables) for host in hosts}
        dealt = deal((unit for host in hosts for unit in described[host].units(host)), len(hosts))
        parts = [Slice(number, len(dealt), units) for number, units in enumerate(dealt, 1)]
        job = SlicedRun("drift", described, ["--check"], writes, Path("/nowhere"))
        outcomes = Runner(job, workers, self.told.append).run(parts)
        assert [folder for folder in self.folders if folder.exists()] == []
        assert merging.warnings(outcomes) in (["told once"], [])
        return merging.objects(outcomes)


def statuses(objects: list[dict[str, Any]]) -> dict[str, str]:
    return {one["host"]: one["status"] for one in objects}


def test_all_slices_come_back_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lambda worker, hosts: (0, ""))
    assert statuses(stage.run("abcde", ONE, TWO)) == dict.fromkeys("abcde", "ok")
    assert sorted(host for _worker, hosts in stage.runs for host in hosts) == list("abcde")
    assert len(stage.told) == 10


def test_a_lost_slice_is_run_again_by_another_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def behaviour(worker: Worker, hosts: dict[str, Any]) -> tuple[int, str]:
        return (137, "Killed") if worker == ONE else (0, "")

    stage = Stage(monkeypatch, behaviour)
    assert statuses(stage.run("a", ONE, TWO)) == {"a": "ok"}
    again = "slice 1 of 1 is run again: ssh:one brought nothing back: its command ended with status 137: Killed"
    assert [each for each in stage.told if "again" in each] in ([again], [])
    assert stage.runs[-1] == ("ssh:two", ["a"])


def test_a_slice_that_is_lost_twice_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def behaviour(worker: Worker, hosts: dict[str, Any]) -> tuple[int, str]:
        return (1, "no such collection") if "b" in hosts else (0, "")

    stage = Stage(monkeypatch, behaviour)
    objects = stage.run("abc", ONE, TWO)
    assert statuses(objects) == {"a": "ok", "b": "failed", "c": "ok"}
    assert len([1 for _worker, hosts in stage.runs if hosts == ["b"]]) == 2
    (failed,) = [one for one in objects if one["status"] == "failed"]
    assert (failed["service"], failed["kind"], failed["name"]) == ("ci", "slice", "b ci")
    assert failed["text"].startswith("b ci: slice 2 of 3 failed: ssh:")
    assert failed["text"].endswith("its command ended with status 1: no such collection")


def test_without_workers_the_rest_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lambda worker, hosts: (127, "sh: ansible-runner: not found"))
    objects = stage.run("abcd", ONE)
    assert statuses(objects) == dict.fromkeys("abcd", "failed")
    assert len(stage.runs) == 2
    assert objects[-1]["text"].endswith("slice 4 of 4 failed: no worker was left that could run it")


def test_what_may_still_write_over_there_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lambda worker, hosts: (255, "Connection reset"))
    (failed,) = stage.run("a", ONE, TWO, writes=True)
    assert len(stage.runs) == 1
    assert "whether it still runs there is not known, so it is not run again" in failed["text"]
    stage.run("a", ONE, TWO)
    assert len(stage.runs) == 3


def test_what_is_sent_is_literal_and_for_its_reader_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cert.pem").write_text("a certificate", encoding="utf-8")
    monkeypatch.setenv("TOOLCHAIN_CI_CA_PATH", str(tmp_path / "cert.pem"))
    monkeypatch.setenv("TOOLCHAIN_WIKI_TOKEN", "of-another-service")
    seen: dict[str, Any] = {}

    def behaviour(worker: Worker, hosts: dict[str, Any]) -> tuple[int, str]:
        folder = stage.folders[-1]
        files = [file for file in folder.rglob("*") if file.is_file()]
        modes = {stat.S_IMODE(file.stat().st_mode) for file in files if "files" not in file.parts}
        texts = [file.read_text("utf-8") for file in files]
        variables = json.loads((folder / "env/envvars").read_text("utf-8"))
        seen.update(hosts["a"], modes=modes, texts=texts, environment=variables)
        seen["cmdline"] = (folder / "env/cmdline").read_text("utf-8")
        return 0, ""

    stage = Stage(monkeypatch, behaviour)
    stage.run("a", ONE, ci_baseline_java_versions=[11], toolchain_ci_password="{{ p }}")
    assert seen["toolchain_ci_password"] == "literal {{ p }}"
    assert seen["ci_baseline_java_versions"] == [11]
    assert seen["enforce_roles"] == ["ci_baseline"]
    assert seen["modes"] == {0o600}
    assert seen["cmdline"] == "--check"
    there = seen["environment"].pop("TOOLCHAIN_CI_CA_PATH")
    assert there.startswith("/tmp/toolchain-slice-")
    assert there.endswith("/data/files/0/cert.pem")
    assert seen["environment"] == {"ANSIBLE_INVENTORY_ENABLED": "ansible.builtin.yaml"}
    assert "a certificate" in seen["texts"]


def test_a_file_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lambda worker, hosts: (0, ""))
    with pytest.raises(SlicesError) as caught:
        stage.run("a", ONE, ci_baseline_scripts=[{"name": "x", "src": "x.groovy"}])
    sentence = "the file /nowhere/x.groovy cannot be read: No such file or directory."
    assert str(caught.value) == f"ci_baseline_scripts[0].src: {sentence}"
    assert stage.runs == []


def test_a_worker_of_which_nothing_is_heard_is_given_up() -> None:
    source, into = os.pipe()
    with open(source, "rb", buffering=0) as stream, open(into, "wb", buffering=0) as worker:
        worker.write(b"a sign of life")
        with tempfile.TemporaryFile() as kept, open(os.dup(kept.fileno()), "wb") as target:
            assert not forward(stream, target, 0.01)
            kept.seek(0)
            assert kept.read() == b"a sign of life"


def test_a_stream_is_handed_on_to_its_end() -> None:
    source, into = os.pipe()
    os.write(into, b"all of it")
    os.close(into)
    with tempfile.TemporaryFile() as kept, open(os.dup(kept.fileno()), "wb") as target:
        with open(source, "rb", buffering=0) as stream:
            assert forward(stream, target, 10)
        kept.seek(0)
        assert kept.read() == b"all of it"


class Marked(str):
    """As a text of ansible-core 2.16 that comes from a lookup."""

    def __str__(self) -> str:
        return self


def test_texts_that_ansible_marked_are_sent_as_plain_ones(tmp_path: Path) -> None:
    host, given = Marked("a"), {"ci_baseline_plugins": [{Marked("name"): Marked("git")}]}
    described: dict[str, Description] = {host: Description([Marked("ci_baseline")], given)}
    units = list(described[host].units(host))
    Package(tmp_path, "/tmp/toolchain-slice-1/data", tmp_path).fill(
        Slice(1, 1, units), described, []
    )
    assert sent(tmp_path) == {"a": {**given, "enforce_roles": ["ci_baseline"]}}


def test_what_is_the_same_for_all_hosts_is_sent_once_and_to_no_other_host(tmp_path: Path) -> None:
    both = {"ci_baseline_plugins": [{"name": "git"}]}
    variables: dict[str, dict[str, Any]] = {
        "a": {**both, "ci_baseline_parallel": 1, "ci_baseline_check_java": False},
        "b": {**both, "ci_baseline_parallel": True},
    }
    described = {host: Description(["ci_baseline"], given) for host, given in variables.items()}
    units = [unit for host, one in described.items() for unit in one.units(host)]
    Package(tmp_path, "/tmp/toolchain-slice-1/data", tmp_path).fill(
        Slice(1, 1, units), described, []
    )
    roles = {"enforce_roles": ["ci_baseline"]}
    assert sent(tmp_path) == {host: {**given, **roles} for host, given in variables.items()}
    assert (tmp_path / "inventory/hosts.yml").read_text("utf-8").count("ci_baseline_plugins") == 1
