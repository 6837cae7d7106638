# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote a container image: copy or move its tags [C2.10]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...core.concurrency import bounded
from ...core.errors import ToolchainError, conflict, invalid, not_found, rejected
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.operations.objects import attempt_each, failure_of
from ...core.plan import Action, Plan, unchanged, without_none
from ...core.times import not_built
from ...core.verification import without_effect
from .. import repositories
from ..builds.records import BuildKey
from ..builds.soak import StatusSoak, build_named_by, require_builds
from ..builds.trace import image_item
from ..client import RepoClient, require_new_path
from ..image_names import ImageReference, image_of, require_tag, subject_of
from ..service import SERVICE
from . import registry
from .attached import Attachments, TagState, states_of
from .predicted_tags import PredictedTag, predict, predicted_tags

_HINT_NOT_FOUND = "the tag, the image or a repository is missing, or a repository is not local"
_SELECTIONS = ("tag", "tags", "all_tags")


@dataclass
class Attempt:
    """A promotion request and its outcome.

    :param tag: the tag to promote; `None` means all tags of the image
    :param states: states of the tags that the request promotes
    :param message: the server's message
    :param after: states of the tags after the promotion
    """

    name: str
    tag: str | None
    states: Sequence[TagState]
    message: str = ""
    after: Sequence[TagState] = ()
    error: ToolchainError | None = None

    @property
    def copy(self) -> bool:
        return all(state.copy for state in self.states)

    @property
    def owners(self) -> tuple[str, ...]:
        """Return the tags of the images to which the tag is attached."""
        return () if self.tag is None else self.states[0].owners


@dataclass(frozen=True)
class TagPromotions:
    """What a plan promotes.

    :param states: states of all tags
    :param requests: the tags of each promotion, with the tag that it names
    :param absent: error for tags that a build of the run must push first
    """

    states: Sequence[TagState]
    requests: Sequence[tuple[str | None, Sequence[TagState]]] = ()
    absent: ToolchainError | None = None


@dataclass(frozen=True, kw_only=True)
class ImageSoak(StatusSoak):
    """The option `soak` of images.

    :param project: project of the build that has the image
    """

    project: str | None = None


@dataclass(frozen=True)
class DockerPromoteOptions:
    """The options of `docker_promote`."""

    target_repo: str
    image: str
    repo: str | None = None
    target_image: str | None = None
    tag: str | None = None
    tags: list[str] | None = None
    target_tag: str | None = None
    copy: bool = True
    all_tags: bool = False
    attached: bool = True
    pending: bool = False
    force: bool = False
    soak: ImageSoak | None = None


class DockerPromoteOperation:
    """Copy or move tags of an image to another repository.

    Server fact [repo-25]: the server overwrites existing tags in the target. A request without a
    tag promotes all tags of the image.
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"digest": reads("read"), "promote": writes("read", unforeseen=("deploy",))},
        kind="image",
        name="{target_repo}/{image}:{tag}",
    )

    def __init__(self, task: Task, options: DockerPromoteOptions) -> None:
        self._task, self._options, self._copy = task, options, options.copy
        source = image_of("image", options.image, options.repo)
        target = image_of(
            "target_image", options.target_image or source.name, options.target_repo, "target_repo"
        )
        require_new_path("target_image", target.name)
        self._digest = source.digest
        self._names = _names(options, source, target)
        self._source = ImageReference(source.repo, source.name)
        self._target = ImageReference(target.repo, target.name)
        if self._source == self._target and all(
            tag == target_tag for tag, target_tag in (self._names or {"": ""}).items()
        ):
            raise invalid(f"'{self._source}' would be promoted to itself")
        self._client = RepoClient(task)
        self._predicted = predicted_tags(self._client, self._source)

    def plan(self) -> Plan:
        plan, soak = self._plan(), self._options.soak
        if soak is None or not plan.changed or plan.data.absent is not None:
            return plan
        promotions: TagPromotions = plan.data
        self._require_soak(soak, [state for _tag, some in promotions.requests for state in some])
        return unchanged(self._result(promotions.states, {})) if soak.check_only else plan

    def _require_soak(self, soak: ImageSoak, states: Sequence[TagState]) -> None:
        """Raise an error unless the builds of all images have been in the status for long enough.

        What is attached to an image has no build of its own.
        """
        tags = [
            state.tag
            for state in states
            if not state.owners and not (self._names is None and subject_of(state.tag))
        ]

        def build_of(tag: str) -> BuildKey:
            label, place = f"the image '{self._source}:{tag}'", f"{self._source}:{tag}"
            if (known := self._predicted.get(tag)) is not None:
                if known.origin is None:
                    raise not_built(f"the build of {label}", soak.status, soak.duration)
                place = f"{known.origin}:{known.origin.tag}"
            item = image_item(self._client, place)
            return build_named_by(label, item["properties"], soak.project)

        require_builds(self._client, bounded(self._client.connections, build_of, tags), soak)

    def _plan(self) -> Plan:
        states, is_image = self._read()
        absent = self._absent(states)
        if absent is not None:
            return self._expected(states, absent)
        if self._digest is not None:
            (state,) = states
            found = state.source if state.source is not None else state.target
            name = f"'{self._source}:{state.tag}'"
            if found == registry.PRESENT:
                message = f"cannot check whether {name} has {self._digest}"
                raise rejected(f"{message}: the server does not return digests")
            if found not in (self._digest, registry.EXPECTED):
                message = f"{name} has {found}, but image specifies {self._digest}"
                raise conflict(f"{message}: nothing was promoted")
        if self._options.attached and states and self._source != self._target:
            attachments = Attachments(
                self._client, self._source, self._target, copy=self._copy, predicted=self._predicted
            )
            states += attachments.states(states, self._task.warn)
            states = states if self._options.force else attachments.marked(states)
        force = self._options.force
        pending = [
            each for each in states if each.source is not None and (force or not each.is_done)
        ]
        if not pending:
            return Plan({}, {}, result=self._result(states, {}))
        requests: list[tuple[str | None, list[TagState]]]
        requests = [(state.tag, [state]) for state in pending]
        if is_image and not any(state.is_extended for state in states):
            # a single request for the image promotes all of its tags
            pending, requests = states, [(None, states)]
        if not any(state.target for state in pending):
            repositories.require_shown(self._client, self._target.repo)
        for state in pending:
            self._warn_of_overwriting(state)
        before = _shown(self._target, {state.target_tag: state.target for state in pending})
        moved = {state.tag: state.source for state in pending if not state.copy}
        before = {**_shown(self._source, moved), **before}
        after = _shown(self._target, {state.target_tag: state.source for state in pending})
        action: Action = "update" if before else "create"
        result = self._result(states, {tag_state.tag: tag_state.promoted for tag_state in pending})
        return Plan(before, after, action, result=result, data=TagPromotions(states, requests))

    def _read(self) -> tuple[list[TagState], bool]:
        """Read the tags in source and target.

        If the task promotes all tags and the source has none, a finished move may have put them
        into the target. The second value tells whether these are really all tags of the source.
        """
        names, is_image = self._names, False
        if names is None:
            known = {tag: predicted.digest for tag, predicted in self._predicted.items()}
            source, every = self._all_tags(self._source, known)
            target, _every = self._all_tags(self._target, {})
            names = {tag: tag for tag in source or ({} if self._copy else target)}
            is_image = len(source) == every
        else:
            # earlier tasks in check mode create some of them
            predicted = self._predicted
            known = {tag: predicted[tag].digest for tag in names if tag in predicted}
            others = [tag for tag in names if tag not in known]
            source = {**self._some_tags(self._source, others), **known}
            target = self._some_tags(self._target, list(names.values()))
        return states_of(names, source, target, copy=self._copy), is_image

    def _all_tags(
        self, image: ImageReference, predicted: Mapping[str, str]
    ) -> tuple[dict[str, str], int]:
        """Return the tags that the task may promote, and the number of all tags."""
        found = {**registry.manifests(self._client, image.repo, image.name), **predicted}
        attached = self._options.attached
        wanted = {tag: digest for tag, digest in found.items() if attached or not subject_of(tag)}
        return wanted, len(found)

    def _some_tags(self, image: ImageReference, tags: Sequence[str]) -> dict[str, str]:
        return registry.manifests_of(self._client, image.repo, image.name, tags)

    def _expected(self, states: Sequence[TagState], absent: ToolchainError) -> Plan:
        """Return the plan for tags that will be pushed later; its `apply()` raises `absent`.

        Raises `absent` unless `pending` is set.
        """
        soak = self._options.soak
        if soak is not None and soak.check_only:
            # an earlier task of the run may push the image; its promotion decides
            return unchanged(self._result(states, {}))
        if not self._options.pending:
            raise absent
        for image in (self._source, self._target):
            repositories.require_shown(self._client, image.repo)
        open_states = [state for state in states if not state.is_done]
        for state in open_states:
            self._warn_of_overwriting(state)
        tags = ", ".join(state.tag for state in open_states if state.source is None) or "*"
        self._task.warn(
            f"'{self._source}:{tags}' does not exist yet: a build of this run must push it"
        )
        before = _shown(self._target, {state.target_tag: state.target for state in open_states})
        coming = {state.target_tag: state.source or registry.EXPECTED for state in open_states}
        after = _shown(self._target, coming or {"*": registry.EXPECTED})
        action: Action = "update" if before else "create"
        result = self._result(states, {state.tag: state.promoted for state in open_states})
        return Plan(before, after, action, result=result, data=TagPromotions(states, absent=absent))

    def _absent(self, states: Sequence[TagState]) -> ToolchainError | None:
        """Return the error for tags that are missing in the source and not yet promoted."""
        if self._names is None and not states:
            message = f"promoting '{self._source}': the image does not exist, or has no tags"
            return not_found(message, status=404)
        missing = [state for state in states if state.source is None and not state.is_done]
        if not missing:
            return None
        tags: dict[str, None] = dict.fromkeys(tag_state.tag for tag_state in missing)
        sources = ", ".join(f"'{self._source}:{tag}'" for tag in tags)
        targets = ", ".join(f"'{self._target}:{tag_state.target_tag}'" for tag_state in missing)
        seen = any(tag_state.target is not None for tag_state in missing)
        how = "exists, but cannot be compared" if seen else "does not exist either"
        return ToolchainError(
            "not_found",
            f"promoting {sources}: the source does not exist, and the target {targets} {how}",
            status=404,
            result={"tags": [_shown_tag(tag_state, {}, tags) for tag_state in states]},
        )

    def _warn_of_overwriting(self, state: TagState) -> None:
        if state.overwritten is not None:
            digest = "" if state.is_named_only else f", which has {state.overwritten}"
            name = f"{self._target}:{state.target_tag}"
            self._task.warn(f"the promotion overwrites '{name}'{digest}")

    def _result(
        self, states: Sequence[TagState], promoted: Mapping[str, TagState], message: str = ""
    ) -> dict[str, Any]:
        tags = [_shown_tag(state, promoted, {}) for state in states]
        single = tags[0] if self._options.tags is None and self._names is not None else {}
        return {
            "source_digest": single.get("source_digest"),
            "target_digest": single.get("target_digest"),
            "tags": tags,
            "message": message,
        }

    def preflight(self, plan: Plan) -> None:
        soak = self._options.soak
        if soak is not None and plan.data.absent is not None:
            raise not_built(f"the build of '{self._source}'", soak.status, soak.duration)

    def predict(self, plan: Plan) -> None:
        for state in plan.data.states:
            if state.source is None and state.is_done:
                continue  # it was moved before
            source, target = self._source, self._target
            digest: str | None = state.source or registry.EXPECTED
            origin: ImageReference | None = ImageReference(source.repo, source.name, state.tag)
            if state.is_extended:
                digest = state.target
                origin = ImageReference(target.repo, target.name, state.target_tag)
            elif state.tag in self._predicted:
                origin = self._predicted[state.tag].origin
            elif state.source is None:
                origin = None
            value = PredictedTag(str(digest), origin, state.subject)
            predict(self._client, target, state.target_tag, value)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        promotions: TagPromotions = plan.data
        if promotions.absent is not None:
            raise promotions.absent
        states = promotions.states
        attempts = [
            Attempt(f"'{self._source}:{tag}'", tag, some) for tag, some in promotions.requests
        ]

        def work(attempt: Attempt) -> None:
            owners = attempt.owners
            if owners and _failed(attempts).keys() >= set(owners):
                message = f"promoting {attempt.name}: its image was not promoted"
                raise ToolchainError("failed", message)
            attempt.message, attempt.after = self._promote(attempt)

        for attached in (False, True):
            some = [each for each in attempts if bool(each.owners) == attached]
            attempt_each(work, some, self._client.connections)
        done = {state.tag: state for each in attempts for state in each.after}
        tags = [_shown_tag(state, done, _failed(attempts)) for state in states]
        failure = failure_of(attempts, "tags", {"tags": tags})
        if failure is not None:
            raise failure
        return self._result(states, done, "; ".join(dict.fromkeys(e.message for e in attempts)))

    def _promote(self, request: Attempt) -> tuple[str, list[TagState]]:
        """Send a promotion; return the server's message and the new tag states.

        Raises `failed` if a tag is missing in the target, or still in the source after a move.
        """
        target_tags = [state.target_tag for state in request.states if state.tag == request.tag]
        body = without_none(  # the server rejects empty values [repo-25]
            {
                "targetRepo": self._target.repo,
                "dockerRepository": self._source.name,
                "targetDockerRepository": self._options.target_image and self._target.name,
                "tag": request.tag,
                "targetTag": next((tag for tag in target_tags if tag != request.tag), None),
                "copy": request.copy,
            }
        )
        try:
            message = registry.promote(
                self._client, self._source.repo, body, lambda: self._is_done(request)
            )
        except ToolchainError as error:
            if error.status == 404:
                error.with_hint(_HINT_NOT_FOUND)
            raise
        after, left = self._read_after(request)
        missing = [f"{self._target}:{state.target_tag}" for state in after if not state.is_same]
        if missing:
            reason = f"{', '.join(missing)} does not have the manifest of the source"
        elif left:
            names = ", ".join(f"{self._source}:{tag}" for tag in left)
            reason = f"{names} still exists in the source"
        else:
            return message, after
        reported = f" (the server reported: {message})" if message else ""
        failure = without_effect(f"promoting '{self._source}'", f"{reason}{reported}")
        failure.detail = message or None
        raise failure

    def _read_after(self, request: Attempt) -> tuple[list[TagState], list[str]]:
        """Read the tags of a request again.

        Returns the states with the current target, and the tags that still exist in the source
        after a move.
        """
        names = {state.tag: state.target_tag for state in request.states}
        target = self._some_tags(self._target, list(names.values()))
        after = [replace(state, target=target.get(state.target_tag)) for state in request.states]
        return after, [] if request.copy else list(self._some_tags(self._source, list(names)))

    def _is_done(self, request: Attempt) -> bool | None:
        """Return whether the server carried out a request whose response was lost.

        Returns `None` if that is unknown: the target already had equal tags before a copy, or only
        some tags were promoted.
        """
        after, left = self._read_after(request)
        if not request.copy and len(left) < len(request.states):
            return True if all(state.is_same for state in after) and not left else None
        reported = [
            new.is_same
            for old, new in zip(request.states, after, strict=True)
            if not (request.copy and old.is_same)
        ]
        if not request.copy:
            return None if reported != [state.is_same for state in request.states] else False
        if len(set(reported)) != 1:
            return None
        return reported[0]


def _failed(attempts: Sequence[Attempt]) -> dict[str, ToolchainError]:
    """Return the errors of the failed tags, by tag."""
    failed = [(each.states, each.error) for each in attempts if each.error is not None]
    return {state.tag: error for states, error in failed for state in states}


def _shown_tag(
    state: TagState, promoted: Mapping[str, TagState], failed: Mapping[str, ToolchainError | None]
) -> dict[str, Any]:
    if state.tag in failed:
        error = failed[state.tag]
        return {**state.shown("failed"), **({} if error is None else {"error": error.message})}
    if state.tag in promoted:
        return promoted[state.tag].shown("promoted")
    return state.shown("unchanged")


def _names(
    options: DockerPromoteOptions, source: ImageReference, target: ImageReference
) -> dict[str, str] | None:
    """Return the names of the tags in the target, by source tag; `None` means all tags.

    Raises `invalid` unless exactly one of `tag`, `tags` and `all_tags` is given.
    """
    tag, tags = _single("tag", options.tag, "image", source.tag), options.tags
    target_tag = _single("target_tag", options.target_tag, "target_image", target.tag)
    for option, name in (("tag", tag), ("target_tag", target_tag)):
        require_tag(option, name)
    for number, name in enumerate(tags or ()):
        require_tag(f"tags[{number}]", name)
    if source.digest is not None and tag is None:
        raise invalid(
            f"image: '{options.image}' has a digest but no tag: only tags can be promoted, so add"
            " the tag"
        )
    if target.digest is not None:
        raise invalid("target_image names the image to create: omit the digest")
    selections = [tag is not None, tags is not None, options.all_tags]
    if not any(selections):
        raise invalid(
            "no tag is set: set tag or tags, or set all_tags: true to promote all tags of the image"
        )
    if selections.count(True) > 1:
        raise invalid(f"only one of {', '.join(_SELECTIONS)} can be set")
    if target_tag is not None and tag is None:
        raise invalid("target_tag requires tag")
    if tag is not None:
        return {tag: target_tag or tag}
    return None if tags is None else {name: name for name in tags}


def _single(option: str, tag: str | None, image_option: str, in_image: str | None) -> str | None:
    """Return the tag that an option or an image reference contains; `None` without one.

    Raises `invalid` if both contain a tag, and the tags differ.

    :param option: name of the option with the value `tag`
    :param image_option: name of the option whose image reference has the tag `in_image`
    """
    if None not in (tag, in_image) and tag != in_image:
        raise invalid(f"{option} is '{tag}', but {image_option} has the tag '{in_image}'")
    return in_image if tag is None else tag


def _shown(image: ImageReference, tags: Mapping[str, str | None]) -> dict[str, str]:
    """Return one side of the diff: digests by full image reference, without missing tags."""
    return {f"{image}:{tag}": digest for tag, digest in without_none(tags).items()}
