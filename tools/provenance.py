# SPDX-License-Identifier: GPL-3.0-or-later
"""Write where an archive comes from: an in-toto statement with SLSA provenance, version 1.

It contains no time of the build, so the same archive of the same commit and builder gives the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

#: The builder if nobody names it: the format requires an address.
UNKNOWN = "about:unknown"


def statement(
    info: Mapping[str, Any],
    name: str,
    digest: str,
    moment: int,
    *,
    commit: str = "",
    builder: str = UNKNOWN,
) -> str:
    """Return the statement about an archive.

    :param info: `collection_info` of its manifest
    :param digest: its SHA-256
    :param moment: the time of the sources, in seconds since 1970
    :param commit: the commit of the sources; empty if they differ from every commit
    :param builder: the address of the service that builds
    """
    repository = str(info["repository"])
    source = {"uri": f"git+{repository}", "digest": {"gitCommit": commit}}
    content = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{repository}/blob/main/tools/build.py",
                "externalParameters": {
                    "version": info["version"],
                    "sourceDateEpoch": moment,
                },
                "resolvedDependencies": [source] if commit else [],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }
    return json.dumps(content, indent=2) + "\n"
