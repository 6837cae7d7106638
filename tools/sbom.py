# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the bill of materials of an archive of the collection, as CycloneDX 1.6 in JSON.

The archive contains no third-party code. The bill lists the packages that it needs at run time, in
the versions of the lock file, which the tests ran with. The same archive gives the same bytes.

cyclonedx-bom 7.5 is not used: for a lock file it writes neither licenses nor dependencies, it
lists only the packages of a single Python, and it needs chardet, which makes each import of
requests 30 ms slower.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from typing import Any

from tools import licences, lock

#: No module runs without these packages; the other packages of the demo are for single features.
REQUIRED = frozenset({"-r requirements.txt", "ansible-core"})
OFFERED = REQUIRED | {"-r requirements-demo.in"}
_MARKER = re.compile(r" ; (?P<marker>[^\\]+?)(?: \\)?$")
_LINKS = {
    "repository": "vcs",
    "homepage": "website",
    "documentation": "documentation",
    "issues": "issue-tracker",
}


def document(info: Mapping[str, Any], digest: str, moment: int) -> str:
    """Return the document for an archive, from its manifest, its SHA-256 and its time."""
    name = f"{info['namespace']}.{info['name']}"
    collection = f"pkg:generic/{name}@{info['version']}"
    entries = lock.read(lock.FILE.read_text(encoding="utf-8"))
    required = {entry.name for entry in lock.needed(entries, REQUIRED)}
    components: list[dict[str, Any]] = []
    needs: dict[str, list[str]] = {collection: []}
    offered = {f"pkg:pypi/{one.name}@{one.version}": one for one in lock.needed(entries, OFFERED)}
    for purl, entry in offered.items():
        component = {
            "type": "library",
            "bom-ref": purl,
            "name": entry.name,
            "version": entry.version,
            "scope": "required" if entry.name in required else "optional",
            "licenses": [{"expression": licences.of(entry.name)}],
            "purl": purl,
        }
        if marker := _MARKER.search(entry.lines[0]):
            named = {"name": "delivery.toolchain:marker", "value": marker["marker"]}
            component["properties"] = [named]
        components.append(component)
        if any(asker in OFFERED for asker in entry.asked_by if asker.startswith("-r ")):
            needs[collection].append(purl)
        needs[purl] = [each for each, one in offered.items() if entry.name in one.asked_by]
    content = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # the same archive has the same number
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)),
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "library",
                "bom-ref": collection,
                "group": info["namespace"],
                "name": info["name"],
                "version": info["version"],
                "description": info["description"],
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "licenses": [{"expression": " OR ".join(info["license"])}],
                "purl": collection,
                "externalReferences": [
                    {"type": kind, "url": info[key]}
                    for key, kind in _LINKS.items()
                    if info.get(key)
                ],
            },
        },
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": found} for ref, found in needs.items()],
    }
    return json.dumps(content, indent=2) + "\n"
