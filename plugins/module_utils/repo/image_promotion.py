# SPDX-License-Identifier: GPL-3.0-or-later
"""Promoting a container image: copying or moving tags (interface contract, 2: docker_promote)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import ToolchainError, invalid
from ..core.plan import Action, Plan, without_none
from ..core.task import Task
from . import containers
from .client import Client, join, repository_key, segments
from .containers import PRESENT

_WHAT_IS_MISSING = "the tag, the image or one of the repositories is missing, or is not a local one"


@dataclass(frozen=True)
class Image:
    """An image in a repository."""

    repo: str
    name: str

    def __str__(self) -> str:
        return f"{self.repo}/{self.name}"

    def shown(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Tags for a diff: full reference to digest."""
        return {f"{self}:{tag}": digest for tag, digest in tags.items()}


class PromoteImage:
    """Tags of an image that shall be in another repository: as copies, or moved there.

    Server fact: what the target holds under a tag is overwritten; without a tag all of them go.
    """

    def __init__(self, task: Task) -> None:
        params = task.params
        self._task, self._params = task, params
        self._source = _image(params, "repo", "image", "image")
        self._target = _image(params, "target_repo", "target_image", "image")
        self._tag, self._target_tag = params["tag"], params["target_tag"] or params["tag"]
        self._check_tags()
        self._client = Client(task)
        self._source_tags: dict[str, str] = {}
        self._target_tags: dict[str, str] = {}

    def _check_tags(self) -> None:
        for option in ("tag", "target_tag"):
            if self._params[option] is not None and not self._params[option].strip():
                raise invalid(f"{option} must not be empty")
        if self._tag is None and not self._params["all_tags"]:
            raise invalid("without tag the whole image would be promoted: all_tags allows it")
        if self._tag is not None and self._params["all_tags"]:
            raise invalid("tag does not go with all_tags")
        if self._target_tag is not None and self._tag is None:
            raise invalid("target_tag goes with tag")
        if self._source == self._target and self._tag == self._target_tag:
            raise invalid(f"'{self._source}' would be promoted to where it is")

    def plan(self) -> Plan:
        self._look()
        if not self._source_tags and not self._is_done():
            raise self._nothing_to_promote()
        if self._is_done() and not (self._params["force"] and self._source_tags):
            return Plan({}, {}, result=self._result(self._target_tags))
        expected = self._expected()
        occupied = {tag: self._target_tags[tag] for tag in expected if tag in self._target_tags}
        self._warn_of_overwriting(expected, occupied)
        before = self._target.shown(occupied)
        if not self._params["copy"]:
            before = {**self._source.shown(self._source_tags), **before}
        action: Action = "update" if before else "create"
        return Plan(before, self._target.shown(expected), action, result=self._result(expected))

    def _look(self) -> None:
        """Read the tags that count on both sides, with their digests where the server tells
        them.
        """
        self._source_tags = self._tags(self._source, self._tag)
        self._target_tags = self._tags(self._target, self._target_tag)

    def _tags(self, image: Image, tag: str | None) -> dict[str, str]:
        if tag is None:
            return containers.manifests(self._client, image.repo, image.name)
        return without_none({tag: containers.manifest(self._client, image.repo, image.name, tag)})

    def _expected(self) -> dict[str, str]:
        """What the target shall have of the source's tags."""
        return {
            tag if self._tag is None else self._target_tag: digest
            for tag, digest in self._source_tags.items()
        }

    def _is_done(self) -> bool:
        """Whether nothing is left to do: moved is what is gone here and is there, copied what is
        the same there.
        """
        if not self._params["copy"]:
            return not self._source_tags and bool(self._target_tags)
        if not self._source_tags:
            # a name without a digest says all that such a server tells
            return self._target_tags.get(self._target_tag or "") == PRESENT
        return self._has(self._expected())

    def _has(self, expected: Mapping[str, str]) -> bool:
        return all(
            tag in self._target_tags and _may_be_same(digest, self._target_tags[tag])
            for tag, digest in expected.items()
        )

    def _nothing_to_promote(self) -> ToolchainError:
        tag = "" if self._tag is None else f":{self._tag}"
        wanted = "" if self._target_tag is None else f":{self._target_tag}"
        there = "is there, but cannot be compared" if self._target_tags else "is not there either"
        return ToolchainError(
            "not_found",
            f"promoting '{self._source}{tag}': the server answered 404, it does not exist, and its"
            f" target '{self._target}{wanted}' {there}",
            status=404,
        )

    def _warn_of_overwriting(
        self, expected: Mapping[str, str], occupied: Mapping[str, str]
    ) -> None:
        for tag, digest in occupied.items():
            if PRESENT in (digest, expected[tag]) or digest != expected[tag]:
                held = "" if digest == PRESENT else f", which holds {digest}"
                self._task.warn(f"the promotion overwrites '{self._target}:{tag}'{held}")

    def _result(self, target_tags: Mapping[str, str], message: str = "") -> dict[str, Any]:
        return {
            "source_digest": _digest(self._source_tags, self._tag),
            "target_digest": _digest(target_tags, self._target_tag),
            "message": message,
        }

    def _body(self) -> dict[str, object]:
        """The request (written interface 2.1). Server fact: what is left out must not be sent
        empty.
        """
        body = {
            "targetRepo": self._target.repo,
            "dockerRepository": self._source.name,
            "targetDockerRepository": self._params["target_image"] and self._target.name,
            "tag": self._tag,
            "targetTag": self._params["target_tag"],
            "copy": self._params["copy"],
        }
        return without_none(body)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        source, expected = self._source_tags, self._expected()
        was_there = self._has(expected)
        message = ""
        try:
            message = containers.promote(self._client, self._source.repo, self._body())
        except ToolchainError as error:
            if error.status == 404:
                error.with_words(_WHAT_IS_MISSING)
            if not error.unanswered or not self._went_through(expected, was_there):
                raise
        self._target_tags = self._tags(self._target, self._target_tag)
        if not self._has(expected):
            raise self._not_there(expected, message)
        self._source_tags = source
        return self._result(self._target_tags, message)

    def _went_through(self, expected: Mapping[str, str], was_there: bool) -> bool:
        """Whether a promotion whose answer got lost has been done: it is not sent a second time."""
        self._look()
        if not self._params["copy"]:
            return self._is_done()
        return self._has(expected) and not (was_there and PRESENT in expected.values())

    def _not_there(self, expected: Mapping[str, str], message: str) -> ToolchainError:
        missing = [
            f"{self._target}:{tag}"
            for tag, digest in expected.items()
            if not _may_be_same(digest, self._target_tags.get(tag, ""))
        ]
        return ToolchainError(
            "failed",
            f"promoting '{self._source}': the server answered well, but {', '.join(missing)} "
            "does not hold the manifest of the source",
            detail=message or None,
        )


def _image(params: Mapping[str, Any], repo: str, option: str, default: str) -> Image:
    name = params[default] if params[option] is None else params[option]
    if not segments(name):
        raise invalid(f"{option} must not be empty")
    return Image(repository_key(repo, params[repo]), join(name))


def _may_be_same(one: str, other: str) -> bool:
    """Whether two digests agree, as far as the server tells them; a tag that is not there is ''."""
    return other != "" and (one == other or PRESENT in (one, other))


def _digest(tags: Mapping[str, str], tag: str | None) -> str | None:
    digest = None if tag is None else tags.get(tag)
    return None if digest == PRESENT else digest
