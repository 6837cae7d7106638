# SPDX-License-Identifier: GPL-3.0-or-later
"""The two spellings of the repository manager's interface, as one table [C1.5], and how a server
tells which of them it speaks.

Nothing else asks which dialect a server speaks: code asks for a property of :class:`Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import invalid


@dataclass(frozen=True)
class Dialect:
    """How a server spells what differs between the written interface and a real server."""

    api_key_header: str
    #: Container paths begin here: C({containers}/{repo}/v2/...).
    containers: str
    #: Properties are set at C({properties}/{repo}/{path}).
    properties: str
    #: A header with checksums goes with each file, and may stand in for bytes that are known.
    checksum_headers: bool
    #: An archive is put at its own name below the folder, not at the folder with a slash.
    archive_by_name: bool
    #: A manifest answers HEAD with its digest; elsewhere only tags can be read.
    manifest_digests: bool
    #: A list of tags that goes on says so with C(Link); elsewhere a short page proves nothing.
    tag_links: bool
    #: The item query knows properties, as criteria and as fields.
    query_by_property: bool
    #: A build record without C(statuses) is one that was never promoted.
    record_shows_promotions: bool
    #: Builds whose numbers hold a comma are deleted by a JSON body, not by the query.
    builds_deleted_by_body: bool
    #: Build records can be published.
    publishes_builds: bool
    #: Items can be copied and moved.
    relocates_items: bool
    #: The pattern search.
    patterns: str
    #: The key of the repository of build records, as the trash has it.
    builds_trash: str
    #: What is in the trash can be looked at item by item, not only by repository.
    trash_shows_items: bool
    #: Properties can be read and removed, not only set.
    full_properties: bool
    #: Properties of a folder go to all that is in it, unless the request says that they do not.
    recursive_unless_told: bool
    #: A build promotion is told to fail fast; elsewhere it is told only not to.
    fail_fast_told: bool
    #: A promotion with C(dryRun) is known to promote nothing; elsewhere the field is only named.
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
    builds_trash="artifactory-build-info",
    trash_shows_items=True,
    full_properties=True,
    recursive_unless_told=True,
    # server fact [repo-15]: what a missing field stands for differs between releases
    fail_fast_told=True,
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
        builds_trash=f"{vendor.lower()}-build-info",
        trash_shows_items=False,
        full_properties=False,
        recursive_unless_told=False,
        # the written interface has no such field
        fail_fast_told=False,
        # the written interface names the field, and does not say what a server does with it
        rehearses_promotions=False,
    )


def dialect_of(settings: Mapping[str, Any]) -> Dialect | None:
    """The dialect that the connection options C(dialect) and C(vendor) name; C(None) for C(auto).

    Raises C(invalid) for a vendor that cannot be part of a header's name.
    """
    vendor = settings["vendor"]
    if re.fullmatch(r"[0-9A-Za-z._-]+", vendor) is None:
        raise invalid(
            "vendor must be made of letters, digits, dots, hyphens and underscores: "
            "it is part of the name of a header"
        )
    named = {"jfrog": JFROG, "generic": generic(vendor)}
    return named.get(settings["dialect"])


def tells_jfrog(headers: Mapping[str, str]) -> bool:
    """Whether headers are those of a server that speaks C(jfrog). Others tell nothing: a proxy may
    have taken them out.

    Server fact [repo-5].
    """
    own = "X-JFrog-Version" in headers or "X-Artifactory-Id" in headers
    return own or headers.get("Server", "").lower().startswith("artifactory")
