# SPDX-License-Identifier: GPL-3.0-or-later
"""Table of the two dialects of the repository manager's interface [C1.5], and their detection.

No other code asks for the dialect: it asks for a property of :class:`Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import invalid


@dataclass(frozen=True)
class Dialect:
    """Differences between the written interface and a real server."""

    api_key_header: str
    #: Prefix of container paths: `{containers}/{repo}/v2/...`.
    containers: str
    #: Properties are set at `{properties}/{repo}/{path}`.
    properties: str
    #: A checksum header is sent with every file, and can replace bytes that the server already has.
    checksum_headers: bool
    #: An archive is sent to its own name below the folder, not to the folder with a trailing slash.
    archive_by_name: bool
    #: HEAD of a manifest returns its digest; otherwise only tags can be read.
    manifest_digests: bool
    #: `Link` announces the next page of tags; otherwise a short page does not prove the end.
    tag_links: bool
    #: Item queries support properties as criteria and as fields.
    query_by_property: bool
    #: A build record without `statuses` was never promoted.
    record_shows_promotions: bool
    #: Builds whose number contains a comma are deleted by a JSON body instead of the query.
    builds_deleted_by_body: bool
    #: Build records can be published.
    publishes_builds: bool
    #: Items can be copied and moved.
    relocates_items: bool
    #: Address of the pattern search.
    patterns: str
    #: Key of the repository of build records.
    builds_key: str
    #: Projects have their own build records and repositories.
    has_projects: bool
    #: The trash lists single items, not only repositories.
    trash_shows_items: bool
    #: Properties can be read and removed, not only set.
    full_properties: bool
    #: Properties of a folder apply to its content, unless the request excludes that.
    recursive_by_default: bool
    #: `failFast` is always sent with a promotion; otherwise only if it is false.
    takes_fail_fast: bool
    #: `dryRun` certainly promotes nothing; otherwise the interface only names the field.
    rehearses_promotions: bool


JFROG = Dialect(
    api_key_header="X-JFrog-Art-Api",
    containers="api/docker",
    properties="api/storage",
    checksum_headers=True,
    archive_by_name=True,
    manifest_digests=True,
    tag_links=True,
    query_by_property=True,
    record_shows_promotions=True,
    builds_deleted_by_body=True,
    publishes_builds=True,
    relocates_items=True,
    patterns="api/search/pattern",
    builds_key="artifactory-build-info",
    has_projects=True,
    trash_shows_items=True,
    full_properties=True,
    recursive_by_default=True,
    # server fact [repo-15]: the default of the field differs between releases
    takes_fail_fast=True,
    rehearses_promotions=True,
)


def generic(vendor: str) -> Dialect:
    return Dialect(
        api_key_header=f"X-{vendor}-Art-Api",
        containers="api/container",
        properties="storage",
        checksum_headers=False,
        archive_by_name=False,
        manifest_digests=False,
        tag_links=False,
        query_by_property=False,
        record_shows_promotions=False,
        builds_deleted_by_body=False,
        # the written interface has no such requests
        publishes_builds=False,
        relocates_items=False,
        patterns="search/pattern",
        builds_key=f"{vendor.lower()}-build-info",
        # the written interface names no projects
        has_projects=False,
        trash_shows_items=False,
        full_properties=False,
        recursive_by_default=False,
        # the written interface has no such field
        takes_fail_fast=False,
        # the written interface names the field, but not its effect
        rehearses_promotions=False,
    )


def dialect_of(settings: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect of the connection options `dialect` and `vendor`; `None` for `auto`.

    Raises `invalid` for a vendor that cannot be part of a header name.
    """
    vendor = settings["vendor"]
    if re.fullmatch(r"[0-9A-Za-z._-]+", vendor) is None:
        raise invalid(
            "vendor must consist of letters, digits, dots, hyphens and underscores, because it is"
            " part of a header name"
        )
    named = {"jfrog": JFROG, "generic": generic(vendor)}
    return named.get(settings["dialect"])


def is_jfrog(headers: Mapping[str, str]) -> bool:
    """Return whether these headers identify a server of the dialect `jfrog`. Other headers prove
    nothing: a proxy may have removed them.

    Server fact [repo-5].
    """
    named = "X-JFrog-Version" in headers or "X-Artifactory-Id" in headers
    return named or headers.get("Server", "").lower().startswith("artifactory")
