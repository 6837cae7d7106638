# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the main job on real input: build and install this collection as a user would, and release it
twice. Then change a server by hand, and find the change.

    python -m tools.demo           everything
    python -m tools.demo --once    a single release, to show that it works on an ansible-core

The release runs against the sandbox. The results (the state of the five servers, the output of both
runs) stay in a temporary folder that is named at the end; the sandbox itself is stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import requests
import yaml

from sandbox.client import Sandbox
from tools import build
from tools.tree import ROOT


def main() -> None:
    """Run the demo in a temporary folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo")
    parser.add_argument("--once", action="store_true", help="end after the first release")
    once: bool = parser.parse_args().once
    folder = Path(tempfile.mkdtemp(prefix="toolchain-demo-"))
    try:
        show(folder, once)
    except (OSError, RuntimeError) as error:
        raise SystemExit(f"\nThe demo failed: {error}\nWhat it wrote is in {folder}") from None


def show(folder: Path, once: bool) -> None:
    """Build and install the collection, release it twice, and find a change by hand."""
    print("1. Build and install the collection, offline", flush=True)
    archive = build.pack_as_ansible_does(ROOT, folder / "dist")
    target = str(folder / "collections")
    run(folder, "ansible-galaxy", "collection", "install", "--offline", "-p", target, str(archive))
    database = folder / "sandbox.db"
    with Sandbox.start(database=str(database), flavour="real") as sandbox:
        print("2. The sandbox plays the five servers")
        for service, url in sandbox.urls.items():
            print(f"   {service:<9} {url}", flush=True)
        documentation = folder / "documentation.zip"
        with zipfile.ZipFile(documentation, "w", zipfile.ZIP_DEFLATED) as packed:
            guides = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md")]
            for file in [ROOT / "README.md", *sorted(guides)]:
                packed.write(file, file.relative_to(ROOT))
        galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
        demo = {
            "version": galaxy["version"],
            "urls": sandbox.urls,
            "archive": str(archive),
            "documentation": str(documentation),
            "documents": str(ROOT / "tools" / "demo_documents"),
            "fetched": str(folder / "fetched"),
        }
        (folder / "demo.json").write_text(json.dumps({"demo": demo}), encoding="utf-8")
        print("3. Release: build, fetch, publish, judge, promote, document, announce", flush=True)
        release(folder, "first")
        if once:
            return
        print("4. Release again: nothing is left to do", flush=True)
        mark = sandbox.mark()
        changed = release(folder, "second")
        writes = sandbox.requests(writes=True, since=mark)
        print(f"   {len(writes)} requests that write")
        if changed or writes:
            raise RuntimeError(f"the second run changed {changed} objects: {writes}")
        print("5. Somebody disables a job by hand, and drift finds it", flush=True)
        page = drift(folder, sandbox.urls["ci"])
    print(
        f"\nWhere to look:\n"
        f"   what was changed      {page.as_uri()}\n"
        f"   keep it, or undo it   docs/tutorial.md\n"
        f"   output of both runs   {folder}/first.log, {folder}/second.log\n"
        f"   the five servers      {sys.executable} -m sandbox --database {database}\n"
        f"   the variables         tools/demo.yml, the playbook playbooks/release.yml"
    )


def release(folder: Path, name: str) -> int:
    """Run the playbook, and print its recap; return how many tasks changed something."""
    log = folder / f"{name}.log"
    output = play(folder, "release")
    log.write_text(output, encoding="utf-8")
    recap = re.search(r"(?m)^localhost\s*:\s*(.*)$", output)
    if recap is None:
        raise RuntimeError(f"the playbook gave no recap, see {log}")
    counts = dict(pair.split("=") for pair in recap[1].split())
    print("  ", *(f"{key}={counts[key]}" for key in ("ok", "changed", "failed")))
    return int(counts["changed"])


def drift(folder: Path, ci: str) -> Path:
    """Export the jobs, disable one by hand, and return the page that shows the difference."""
    logins = "{{ release_connections }}"
    own = {
        "export_folder": "desired",
        "export_services": ["ci"],
        "export_connections": logins,
        "desired_state_folder": "desired",
        "drift_report": "report",
        "enforce_connections": logins,
    }
    play(folder, "export", **own)
    login = ("builder", "builder-api-token-1234567890")
    requests.post(f"{ci}/job/delivery/job/package/disable", auth=login, timeout=60)
    (line,) = re.findall(r"(?m)^~ job .*$", play(folder, "drift", **own))
    print(f"   {line}")
    return folder / "report" / "report.html"


def play(folder: Path, playbook: str, **variables: object) -> str:
    """Run a playbook of the collection; return its output."""
    files = (ROOT / "tools" / "demo.yml", folder / "demo.json")
    given = [*(f"@{file}" for file in files), json.dumps(variables)]
    options = [word for each in given for word in ("-e", each)]
    return run(folder, "ansible-playbook", f"delivery.toolchain.{playbook}", *options)


def run(folder: Path, *command: str) -> str:
    """Run a program of this environment; return its output, which error messages include."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    output = done.stdout + done.stderr
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])} ended with {done.returncode}:\n{output}")
    return output


if __name__ == "__main__":
    main()
