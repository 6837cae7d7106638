# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict the tags of images that earlier tasks of a run in check mode would create."""

from __future__ import annotations

from dataclasses import dataclass

from ..client import RepoClient
from ..image_names import INDEX, MANIFESTS, ImageReference
from . import registry

_KIND = "image tag"


@dataclass(frozen=True)
class PredictedTag:
    """A tag that an earlier task would create.

    :param origin: the tag on the server that has the same content; `None` if there is none
    :param subject: digest of the image to which the tag is attached
    """

    digest: str
    origin: ImageReference | None = None
    subject: str | None = None


def predicted_tags(client: RepoClient, image: ImageReference) -> dict[str, PredictedTag]:
    """Return the predicted tags of an image: those of promotions, and those whose manifest is
    among the predicted files, for example of a promoted build.
    """
    found: dict[str, PredictedTag] = {}
    files = client.predictions.all("item", image.repo)
    for path in sorted(files, key=lambda path: path.endswith(f"/{INDEX}")):
        tag, _slash, name = path.removeprefix(f"{image.name}/").partition("/")
        if path.startswith(f"{image.name}/") and name in MANIFESTS:
            sha256 = files[path].get("sha256")
            found[tag] = PredictedTag(f"sha256:{sha256}" if sha256 else registry.EXPECTED)
    for tag, value in client.predictions.all(_KIND, str(image)).items():
        origin = value["origin"] and ImageReference(*value["origin"])
        found[tag] = PredictedTag(value["digest"], origin, value["subject"])
    return dict(sorted(found.items()))


def predict(client: RepoClient, image: ImageReference, tag: str, value: PredictedTag) -> None:
    """Store a tag that the task would create, for later tasks in check mode."""
    origin = value.origin
    stored = {
        "digest": value.digest,
        "origin": origin and (origin.repo, origin.name, origin.tag),
        "subject": value.subject,
    }
    client.predictions.add(_KIND, str(image), tag, value=stored)
