# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the build record of an item, an image or a build, for the lookup `trace` [C8.11]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import ToolchainError, invalid, not_found
from ...core.json_text import as_text, json_objects
from ...core.module.task import Task
from .. import aql, properties, repositories
from ..client import RepoClient, join, repository_key
from ..image_names import FORM, MANIFESTS, image_of
from ..items import listing
from . import records
from .records import AggregatedBuild, BuildKey, referenced_builds, shown_record

_PREFIX = re.compile(r"(artifact|build|image):(.*)", re.DOTALL)
_FORMS = {"artifact": "repo/path", "build": "build/number", "image": FORM}
#: Property with the address of the CI build, which is used if the record has no `url`.
_CI_ADDRESS = "buildInfo.env.BUILD_URL"


@dataclass(frozen=True)
class Origin:
    """An item and the build that produced it; `None` if unknown.

    :param aggregated: the records of the builds to which the build refers, directly or not
    """

    artifact: dict[str, Any] | None
    build: dict[str, Any] | None
    aggregated: list[dict[str, Any]]

    @property
    def records(self) -> list[dict[str, Any]]:
        """Return the record of the build, and those of the builds to which it refers."""
        return [] if self.build is None else [self.build, *self.aggregated]


def ci_address(record: Mapping[str, Any]) -> str | None:
    """Return the URL of the CI build; `None` if the record does not contain it."""
    address = record.get("url") or record.get("properties", {}).get(_CI_ADDRESS)
    return str(address) if address else None


def revisions(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the source revisions of a build record with their commit messages ("" if unknown).

    Server fact [repo-29]: old clients record a single revision as `vcsRevision`.
    """
    sources = [*json_objects(record.get("vcs")), {"revision": record.get("vcsRevision")}]
    found: dict[str, str] = {}
    for source in sources:
        if source.get("revision"):
            found.setdefault(str(source["revision"]), as_text(source.get("message")))
    return found


def origin(task: Task, term: str, project: str | None = None) -> Origin:
    """Return the item that a term of the lookup names, and its build record.

    :param term: `repo/path`, `build/number` or `repo/image:tag`; a prefix `artifact:`, `build:` or
        `image:` selects the type
    :param project: key of the project that the build belongs to
    :raises ToolchainError: `not_found` if the object does not exist, `invalid` if the term is
        malformed
    """
    client = RepoClient(task)
    kind, name = _kind(client, term)
    artifact = None
    if kind == "build":
        # the number of `app/1.0\/7` is `1.0/7`
        *names, number = (part.replace(r"\/", "/") for part in re.split(r"(?<!\\)/", name))
        build_name = "/".join(names)
        if not build_name.strip() or not number.strip():
            raise invalid(
                f"'{name}' does not name a build: write {_FORMS['build']}, such as nightly/104"
            )
        try:
            build: AggregatedBuild | None = _record(client, build_name, number, project)
        except ToolchainError as error:
            if error.kind == "not_found" and "/" in build_name:
                error.with_hint(r"write a slash in the build number as \/")
            raise
    elif kind == "artifact":
        repo, _slash, path = name.partition("/")
        if not path.strip("/ "):
            raise invalid(f"'{name}' is incomplete: write {_FORMS['artifact']}")
        artifact = _item(client, repository_key("the term", repo), path)
        if artifact is None:
            message = f"there is no item '{path}' in the repository '{repo}'"
            raise not_found(message)
        build = _build_of_item(client, artifact, project)
    else:
        artifact = image_item(client, name)
        build = _build_of_item(client, artifact, project)
    if build is None:
        return Origin(artifact, None, [])
    others = referenced_builds(client, build, missing_ok=True)
    return Origin(artifact, _shown(build), [_shown(other) for other in others])


def _kind(client: RepoClient, term: str) -> tuple[str, str]:
    prefixed = _PREFIX.fullmatch(term)
    if prefixed and not prefixed[2].strip():
        raise invalid(
            f"'{term}' does not name an object: write {prefixed[1]}:{_FORMS[prefixed[1]]}"
        )
    if prefixed:
        return prefixed[1], prefixed[2]
    if ":" in term:
        return "image", term
    first = term.partition("/")[0]
    try:
        _response, listed = repositories.listed(client)
    except ToolchainError as error:
        raise error.with_hint(f"write artifact:{term} or build:{term}") from None
    known = any(entry.get("key") == first for entry in listed)
    return ("artifact" if known else "build"), term


def _record(client: RepoClient, name: str, number: str, project: str | None) -> AggregatedBuild:
    key = BuildKey(name, number, project)
    return AggregatedBuild(key, records.read_record(client, key))


def _shown(build: AggregatedBuild) -> dict[str, Any]:
    return {"name": build.key.name, "number": build.key.number, **shown_record(build.record)}


def image_item(client: RepoClient, term: str) -> dict[str, Any]:
    """Return the manifest of an image with its properties. Raises `not_found`.

    :param term: `repo/image:tag` or `repo/image@sha256:...`
    """
    image = image_of("the term", term, None)
    if image.tag is None and image.digest is None:
        raise invalid(f"'{term}' does not name a tag: write {FORM}")
    paths = [join(image.name, image.tag, manifest) for manifest in MANIFESTS if image.tag]
    if not paths:
        criteria = {
            "repo": image.repo,
            "path": {"$match": f"{image.name}/*"},
            "name": {"$match": "*manifest.json"},
            "sha256": str(image.digest).removeprefix("sha256:"),
        }
        purpose = f"searching for '{image}@{image.digest}'"
        rows = aql.ask(client, purpose, aql.items(criteria, [])).rows
        paths = sorted(f"{row.get('path')}/{row.get('name')}" for row in rows)
    for path in paths:
        found = _item(client, image.repo, path)
        if found is not None and image.digest in (None, f"sha256:{found['sha256']}"):
            return found
    names = " and ".join(
        part for part in (image.tag and f"the tag '{image.tag}'", image.digest) if part
    )
    message = f"there is no image '{image.name}' with {names} in the repository '{image.repo}'"
    raise not_found(message)


def _item(client: RepoClient, repo: str, path: str) -> dict[str, Any] | None:
    found = listing.head(client, repo, path)
    if found is None:
        return None
    reported = properties.read(client, repo, path)
    shown = {"size": found.size, "sha1": found.sha1, "sha256": found.sha256}
    return {"repo": repo, "path": path, **shown, "properties": reported}


def _build_of_item(
    client: RepoClient, artifact: Mapping[str, Any], project: str | None
) -> AggregatedBuild | None:
    """Return the build record that an item's properties name [repo-30]; `None` without one."""
    reported = artifact["properties"] or {}
    names, numbers = reported.get("build.name"), reported.get("build.number")
    if not names or not numbers:
        return None
    item = f"{artifact['repo']}/{artifact['path']}"
    if len(names) > 1 or len(numbers) > 1:
        client.warn(f"the properties of '{item}' name several builds; the last one is used")
    try:
        return _record(client, names[-1], numbers[-1], project)
    except ToolchainError as error:
        if error.kind != "not_found":
            raise
        scope = f"in the project '{project}'" if project else "outside projects: set project"
        label = BuildKey(names[-1], numbers[-1])
        client.warn(f"'{item}' belongs to {label}, which has no build record {scope}")
        return None
