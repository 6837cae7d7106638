# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what somebody changed on a server into the folder of the desired state."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.utils.display import Display

from ....module_utils._lib.core.errors import ToolchainError, invalid, shorten
from .. import adopted_objects, adoption, folder_edits, variables
from ..report import writing
from .folder import accounts_of, folder_of
from .run import Result, Run, StepError


def choose_adopted(run: Run) -> Result:
    """Return the options of the exports that the chosen findings need, by service."""
    folder, found = _adopted(run)
    _edits(run, folder)
    accounts_of(run)  # an invalid mapping must end the run before its first request
    return {"exports": adoption.exports(found), "count": len(found)}


def _adopted(run: Run) -> tuple[Path, list[adoption.Finding]]:
    """Return the folder of the desired state, and the chosen findings of this host."""
    named = run.value("adopt_report") or run.report_folder or "."
    if not writing.is_path(named):
        raise invalid("adopt_report must be the path of the folder with the report of drift")
    report = adoption.report_of(run.path(str(named)))
    found = adoption.chosen(report["findings"], run.value("adopt_findings"))
    others = sorted({str(one["host"]) for one in found if one["host"] not in run.hosts})
    if others:
        raise invalid(
            f"adopt_findings names findings of {', '.join(others)}, which this play does not run"
            " on: set adopt_hosts"
        )
    own = [finding for finding in found if finding["host"] == run.host]
    connections = run.value("adopt_connections") or run.value("enforce_connections")
    adoption.require_servers(report, own, run.addresses(connections))
    return folder_of(run), own


def export_folder(run: Run) -> Result:
    """Create a temporary folder for an export. Those of runs that were killed are removed."""
    digest = hashlib.sha256(str(folder_of(run).resolve()).encode()).hexdigest()[:12]
    prefix = f"toolchain-adopt-{digest}-"
    for old in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        process = old.name.removeprefix(prefix).partition("-")[0]
        state = old.lstat()
        is_own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
        if is_own and process.isdecimal() and not _is_running(int(process)):
            shutil.rmtree(old, ignore_errors=True)
    # the parent of this worker is the process of the run
    return {"path": tempfile.mkdtemp(prefix=f"{prefix}{os.getppid()}-")}


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _edits(run: Run, folder: Path) -> folder_edits.FolderEdits:
    environment = run.value("desired_state_environment")
    into = run.value("adopt_into", "base" if environment is None else "environment")
    if into not in ("base", "environment"):
        raise invalid(f"adopt_into must be environment or base, not '{shorten(str(into))}'")
    if into == "environment" and environment is None:
        raise invalid(
            "adopt_into: environment needs an environment: set desired_state_environment, or"
            " leave adopt_into out"
        )
    return folder_edits.FolderEdits.read(
        folder, environment, into_environment=into == "environment"
    )


def adopt(run: Run, export: str, exports: Mapping[str, Mapping[str, Any]]) -> Result:
    """Write the exported state of the chosen objects into the folder of the desired state.

    :param export: folder of the export
    :param exports: result of the export of each service
    """
    folder, found = _adopted(run)
    exported = adoption.Exported.read(Path(export), exports, accounts_of(run))
    deletions = variables.is_on("adopt_deletions", run.variables, run.template, default=False)

    def adopted(*, verify: bool) -> tuple[adopted_objects.Adoption, dict[Path, Path | str | None]]:
        work = adopted_objects.Adoption(_edits(run, folder), exported, deletions)
        for finding in sorted(found, key=_is_last):
            work.adopt(finding, verify=verify)
        return work, work.edits.texts()

    try:
        work, texts = adopted(verify=False)
    except ToolchainError:  # an edit that its file does not allow: find out of which finding
        work, texts = adopted(verify=True)
    edits = work.edits
    if not variables.is_on("adopt_force", run.variables, run.template, default=False):
        folder_edits.require_restorable(edits.folder, [*texts])
    patch = edits.patch(texts)
    if not run.variables.get("ansible_check_mode"):
        edits.write(texts)
    for note in work.notes:
        Display().warning(note)
    return {
        "changed": bool(texts),
        "diff": {"prepared": patch},
        "patch": patch,
        **work.result(texts),
        "lines": _lines_of(run, work, texts),
    }


def _is_last(finding: adoption.Finding) -> bool:
    """Return whether other findings come first: pages with a new title, to which others link."""
    title = str(finding["name"]).partition("/")[2]
    return finding["kind"] != "page" or adoption.title_there(finding) == title


def _lines_of(run: Run, work: adopted_objects.Adoption, texts: Iterable[Path]) -> list[str]:
    """Return the lines that are shown at the end of `adopt`."""
    start = "Check mode, nothing was written: " if run.variables.get("ansible_check_mode") else ""
    count = len(work.adopted)
    total = f"{count} of {count + len(work.failures) + work.left} findings adopted in"
    files = ", ".join(map(work.edits.shown, texts)) or "no file"
    return [
        f"{start}{total} {files}.",
        *(
            f"{each['kind']} {each['name']}: {', '.join(each['files']) or 'unchanged'}"
            for each in work.adopted
        ),
    ]


def require_adopted(run: Run, failures: Sequence[Mapping[str, str]]) -> Result:
    """Fail if some findings could not be adopted. The others have been written."""
    if not failures:
        return {}
    kinds = {each["error"] for each in failures}
    message = "; ".join(each["reason"].rstrip(".") for each in failures)
    raise StepError(f"{message}.", kind=kinds.pop() if len(kinds) == 1 else "failed")
