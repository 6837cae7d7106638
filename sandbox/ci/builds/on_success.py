# SPDX-License-Identifier: GPL-3.0-or-later
"""Publish the results of a successful build to the sandbox's repository manager."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from sandbox.context import Context
from sandbox.repo.builds import builds as repo_builds
from sandbox.repo.images import containers

KNOWN = ("publish_build", "push_image")


def carry_out(
    context: Context, on_success: dict[str, Any], names: dict[str, str], started_ms: int
) -> None:
    """Carry out the actions in `on_success` of a job.

    `{NAME}` in their strings is replaced by a parameter or variable of the build. Raises
    LookupError or ValueError if the repository manager rejects an action.
    """
    unknown = sorted(set(on_success) - set(KNOWN))
    if unknown:
        raise ValueError(f"unknown on_success: {', '.join(unknown)}")
    publish = on_success.get("publish_build")
    if publish is not None:
        number = _filled(str(publish.get("number") or "{BUILD_NUMBER}"), names)
        properties = {f"buildInfo.env.{key}": value for key, value in names.items()}
        name = _filled(publish["name"], names)
        repo_builds.publish(context, name, number, properties, started=started_ms)
    push = on_success.get("push_image")
    if push is not None:
        _push(context, {key: _filled(str(push[key]), names) for key in ("repo", "image", "tag")})


def _filled(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], found[0]), text)


def _push(context: Context, image: dict[str, str]) -> None:
    name = f"{image['image']}:{image['tag']}"
    config = hashlib.sha256(name.encode()).hexdigest()
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "size": len(name),
            "digest": f"sha256:{config}",
        },
        "layers": [],
    }
    content = json.dumps(manifest, indent=2).encode()
    containers.push(context, image["repo"], image["image"], image["tag"], content)
