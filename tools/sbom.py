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
from collections.abc import Mapping, Sequence
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
    entries = lock.read(lock.FILE.read_text(encoding="utf-8"))
    offered = lock.needed(entries, OFFERED)
    required = {entry.name for entry in lock.needed(entries, REQUIRED)}
    whole = _collection(info, digest)
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
            "component": whole,
        },
        "components": [_component(entry, entry.name in required) for entry in offered],
        "dependencies": _dependencies(str(whole["bom-ref"]), offered),
    }
    return json.dumps(content, indent=2) + "\n"


def _collection(info: Mapping[str, Any], digest: str) -> dict[str, Any]:
    name = f"{info['namespace']}.{info['name']}"
    purl = f"pkg:generic/{name}@{info['version']}"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": info["namespace"],
        "name": info["name"],
        "version": info["version"],
        "description": info["description"],
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "licenses": [{"expression": " OR ".join(info["license"])}],
        "purl": purl,
        "externalReferences": [
            {"type": kind, "url": info[key]} for key, kind in _LINKS.items() if info.get(key)
        ],
    }


def _purl(entry: lock.Entry) -> str:
    return f"pkg:pypi/{entry.name}@{entry.version}"


def _component(entry: lock.Entry, required: bool) -> dict[str, Any]:
    component = {
        "type": "library",
        "bom-ref": _purl(entry),
        "name": entry.name,
        "version": entry.version,
        "scope": "required" if required else "optional",
        "licenses": [{"expression": licences.of(entry.name)}],
        "purl": _purl(entry),
    }
    marker = _MARKER.search(entry.lines[0])
    if marker:
        component["properties"] = [{"name": "delivery.toolchain:marker", "value": marker["marker"]}]
    return component


def _dependencies(whole: str, offered: Sequence[lock.Entry]) -> list[dict[str, Any]]:
    """Return the dependency graph: the collection first, then the packages."""
    files = {asker for asker in OFFERED if asker.startswith("-r ")}
    direct = [_purl(entry) for entry in offered if entry.asked_by & files]
    return [
        {"ref": whole, "dependsOn": direct},
        *(
            {
                "ref": _purl(entry),
                "dependsOn": [_purl(each) for each in offered if entry.name in each.asked_by],
            }
            for entry in offered
        ),
    ]
