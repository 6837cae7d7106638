# SPDX-License-Identifier: GPL-3.0-or-later
"""The two dialects of the repository manager's HTTP interface [C1.5].

Other code never compares dialects: it reads a capability from :class:`Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import invalid


@dataclass(frozen=True)
class Dialect:
    """Capabilities and addresses by which the generic interface and Artifactory differ."""

    api_key_header: str
    #: Prefix of container paths: `{containers}/{repo}/v2/...`.
    containers: str
    #: Properties are set at `{properties}/{repo}/{path}`.
    properties: str
    #: Key of the repository of build records.
    builds_key: str
    #: Address of the pattern search.
    patterns: str
    #: Files are deployed with checksum headers, and without their bytes if the server has them.
    checksum_headers: bool = False
    #: An archive is deployed to `folder/name.zip`; otherwise to `folder/`.
    archive_by_name: bool = False
    #: HEAD of a manifest returns its digest; otherwise only tags can be read.
    manifest_digests: bool = False
    #: A list of tags without a `Link` header is the last page; otherwise that is not certain.
    tag_links: bool = False
    #: Item queries (AQL) support properties as criteria and as fields.
    query_by_property: bool = False
    #: A build record without `statuses` was never promoted.
    record_shows_promotions: bool = False
    #: A JSON body can list the builds to delete; a query parameter cannot contain commas.
    builds_deleted_by_body: bool = False
    #: Build records can be published.
    publishes_builds: bool = False
    #: Items can be copied and moved.
    relocates_items: bool = False
    #: Projects have their own build records and repositories.
    has_projects: bool = False
    #: The trash can be listed by item; otherwise only by repository.
    trash_shows_items: bool = False
    #: Properties can be read and removed, not only set.
    full_properties: bool = False
    #: Properties set on a folder apply to its content, unless `recursive=0` is sent.
    recursive_by_default: bool = False
    #: `failFast` is always sent with a promotion; otherwise only if it is false.
    takes_fail_fast: bool = False
    #: `dryRun` is certain to promote nothing.
    rehearses_promotions: bool = False


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
    """Return the dialect of the written interface; the vendor is part of some names.

    That interface has no requests for builds to publish or items to copy, names no projects, and
    does not specify the effect of `dryRun`.
    """
    return Dialect(
        api_key_header=f"X-{vendor}-Art-Api",
        containers="api/container",
        properties="storage",
        patterns="search/pattern",
        builds_key=f"{vendor.lower()}-build-info",
    )


def dialect_of(settings: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect that the connection options select; `None` for `auto`.

    Raises `invalid` if the option `vendor` cannot be part of a header name.
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
    """Return whether response headers identify Artifactory [repo-5].

    `False` proves nothing, because a proxy may have removed the headers.
    """
    named = "X-JFrog-Version" in headers or "X-Artifactory-Id" in headers
    return named or headers.get("Server", "").lower().startswith("artifactory")
