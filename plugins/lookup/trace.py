# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: trace
short_description: Trace an artifact, an image or a build to its commits and issues
version_added: 1.0.0
description:
  - Starts at an item or an image of the repository manager. Follows the build record and the build on the CI server to the commits of that
    build, and to the issues that these commits name.
  - Data that a server does not return, or that no longer exists, is null in the result.
  - The URL and login of the repository manager are options of this lookup. Those of the CI server and the issue tracker come from O(ci) and
    O(tracker), from variables C(toolchain_ci_...) and C(toolchain_tracker_...), or from the environment.
  - Without a URL of the CI server, only the commits of the build record are returned. Without a URL of the tracker, issues are not read,
    and every string that looks like a key counts as an issue.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo_plugin
  - delivery.toolchain.lookup_cache
options:
  _terms:
    description:
      - C(repo/path) of an item, C(build/number), or C(repo/image:tag). A digest, as C(repo/image@sha256:...), also names an image.
      - The number of a build begins after the last slash. Write a slash in the number as C(\/), such as C(build:app/1.0\/7).
      - A prefix C(artifact:), C(build:) or C(image:) sets the type. Without a prefix, a term with a colon is an image, a term that starts
        with the name of a repository is an item, and any other term is a build.
    type: list
    elements: str
    required: true
  project:
    description: Key of the project (JFrog Projects) that has the build record. The default are the builds outside projects.
    type: str
  ci:
    description: Connection options of the CI server, such as C(url), C(username) and C(password).
    type: dict
    default: {}
  tracker:
    description: Connection options of the issue tracker, such as C(url) and C(token).
    type: dict
    default: {}
seealso:
  - module: delivery.toolchain.build_info
  - module: delivery.toolchain.ci_job_info
  - module: delivery.toolchain.tracker_issue_info
"""

EXAMPLES = r"""
- name: Find the issues in the running image
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.trace', 'docker-release-local/delivery/agent:1.0.0').issues }}"

- name: Find the commits in a file
  ansible.builtin.debug:
    msg: "{{ lookup('delivery.toolchain.trace', 'artifact:generic-snapshot-local/agent/1.0.0/agent.txt').commits }}"
"""

RETURN = r"""
_list:
  description: Results, a dictionary per term.
  type: list
  elements: dict
  contains:
    artifact:
      description: The item as C(repo), C(path), C(size), C(sha1), C(sha256) and C(properties). For an image, its manifest.
      type: dict
    build:
      description: Unchanged build record of the server.
      type: dict
    aggregated:
      description:
        - Unchanged records of the builds to which the build refers by modules of the type C(build), directly or not. Their commits and
          issues are in C(commits) and C(issues).
        - A referenced build without a record adds a warning. References that form a loop, and more than ten in a row, are an error.
      type: list
      elements: dict
    ci_build:
      description: CI build of C(build) as C(job), C(number), C(url), C(result), C(building), C(started) (ISO 8601, UTC) and C(duration) (milliseconds).
      type: dict
    commits:
      description: Commits as C(id), C(message), C(author) and C(date).
      type: list
      elements: dict
    issues:
      description: Issues as C(key), C(summary), C(status) and C(url).
      type: list
      elements: dict
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ansible.plugins.lookup import LookupBase

from ..module_utils._lib.ci.builds.records import TracedBuild, traced_build
from ..module_utils._lib.core.errors import ToolchainError
from ..module_utils._lib.core.json_text import json_objects
from ..module_utils._lib.core.module.task import Task
from ..module_utils._lib.repo.builds import trace
from ..module_utils._lib.tracker.client import TrackerClient
from ..module_utils._lib.tracker.issues import tracker_issue_info
from ..plugin_utils._lib import lookups

Options = Callable[[str], Any]
Record = Mapping[str, Any]

_KEY = re.compile(r"(?<![\w/-])[A-Z][A-Z0-9_]{1,30}-[1-9][0-9]{0,9}(?![\w-])")
_PARALLEL = 4


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        lookups.set_options(self, "repo", variables, kwargs)
        found = lookups.string_terms(terms, "an item, a build or an image")
        further = {
            service: lookups.further_service(self, service, variables, self.get_option(service))
            for service in ("ci", "tracker")
        }
        return [
            traced
            for term in found
            for traced in lookups.cached(
                self, term, partial(self._trace, term, further["ci"], further["tracker"]), further
            )
        ]

    def _trace(
        self, term: str, ci: Options | None, tracker: Options | None
    ) -> list[dict[str, Any]]:
        project = self.get_option("project")
        found: trace.Origin = lookups.run_query(
            "repo",
            self.get_option,
            {"_terms": term, "project": project},
            lambda task: trace.origin(task, term, project),
        )
        runs = [_run(ci, trace.ci_address(record)) for record in found.records]
        commits = _commits(found.records, runs)
        traced = {
            "artifact": found.artifact,
            "build": found.build,
            "aggregated": found.aggregated,
            "ci_build": runs[0].build if runs and runs[0] else None,
            "commits": commits,
            "issues": _issues(tracker, found.records, commits),
        }
        return [traced]


def _run(ci: Options | None, address: str | None) -> TracedBuild | None:
    """Read the CI build at the URL in the build record, if it is on the configured server."""
    if ci is None or address is None:
        return None

    def question(task: Task) -> TracedBuild | None:
        try:
            return traced_build(task, address)
        except ToolchainError as error:
            if error.kind != "invalid":
                raise
            task.warn(f"cannot read the CI build of the build record: {error.message}")
            return None

    found: TracedBuild | None = lookups.run_query("ci", ci, {}, question)
    return found


def _commits(
    records: Sequence[Record], runs: Sequence[TracedBuild | None]
) -> list[dict[str, Any]] | None:
    """Return the commits of the CI builds, each followed by other revisions in its build record.

    Returns `None` if there is no CI build and no revision.
    """
    found: dict[str, dict[str, Any]] = {}
    for record, run in zip(records, runs, strict=True):
        for commit in run.commits if run else ():
            found.setdefault(commit["id"], commit)
        for revision, message in trace.revisions(record).items():
            shown = {"id": revision, "message": message, "author": None, "date": None}
            found.setdefault(revision, shown)
    return list(found.values()) if any(runs) or found else None


def _issues(
    tracker: Options | None, records: Sequence[Record], commits: list[dict[str, Any]] | None
) -> list[dict[str, Any]] | None:
    """Return the issues in the build records, and those whose keys are in commit messages.

    Returns `None` if there are neither commits nor a list of issues.
    """
    lists = [listed for record in records if isinstance(listed := record.get("issues"), Mapping)]
    recorded = {
        str(issue["key"]): issue
        for listed in lists
        for issue in json_objects(listed.get("affectedIssues"))
        if issue.get("key")
    }
    named = [key for commit in commits or [] for key in _KEY.findall(commit["message"])]
    keys = list(dict.fromkeys([*recorded, *named]))
    if not keys:
        return None if commits is None and not lists else []
    known = _read(tracker, keys)
    found: dict[str, dict[str, Any]] = {}
    for key in keys:
        shown = None if known is None else known.get(key)
        if known is None or shown is not None or key in recorded:
            # a commit may name the key that an issue had before it was moved
            identity = str((shown or {}).get("id") or key)
            found.setdefault(identity, _issue(key, recorded.get(key, {}), shown))
    return list(found.values())


def _read(tracker: Options | None, keys: list[str]) -> dict[str, dict[str, Any]] | None:
    if tracker is None:
        return None
    query = {"fields": "summary,status"}
    found: dict[str, dict[str, Any]] = lookups.run_query(
        "tracker",
        tracker,
        {},
        lambda task: tracker_issue_info.existing_issues(
            TrackerClient(task, connections=_PARALLEL), keys, query, _PARALLEL
        ),
    )
    return found


def _issue(key: str, recorded: Record, shown: Record | None) -> dict[str, Any]:
    fields = (shown or {}).get("fields", {})
    status = fields.get("status")
    return {
        "key": key,
        "summary": fields.get("summary") or recorded.get("summary"),
        "status": status.get("name") if isinstance(status, Mapping) else None,
        "url": recorded.get("url"),
    }
