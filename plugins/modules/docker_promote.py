#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_promote
short_description: Promote a container image in the artifact repository manager
version_added: 1.0.0
description:
  - Copies or moves one, several or all tags of an image to another repository, with the same or another name.
  - A copy is unchanged if the target has the same manifest digest. If the server shows only tags, the tag name is compared.
  - A move is unchanged if the source does not exist and the target does. If the source exists, it is moved, whatever the target contains.
  - The digest of a multi-architecture index represents all its manifests.
  - What is attached to a promoted tag is promoted too, see O(attached).
  - An overwritten tag of the target is named in a warning and in the diff.
  - After the promotion, both sides are verified. The task fails if the tag is missing in the target, or still in the source after a move.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: With O(force=true), every run promotes the image.
options:
  repo:
    description: Key of the local repository that contains the image. Without it, the first segment of O(image) is the repository.
    type: str
  target_repo:
    description: Key of the local target repository.
    type: str
    required: true
  image:
    description:
      - The image, such as V(team/application). It may be spelled as C(repo/image:tag).
      - With a digest, as C(image:tag@sha256:...), the task fails if the tag has another digest.
    type: str
    required: true
  target_image:
    description: Name of the image in the target, which may have a tag. The default is the name in O(image).
    type: str
  tag:
    description: Tag of the image. Set exactly one of O(tag), O(tags), O(all_tags) and the tag in O(image).
    type: str
  tags:
    description:
      - Several tags. They keep their names in the target. An empty list promotes nothing.
      - If any tag is missing, no tag is promoted, and the error names all missing tags.
      - If the promotion of a tag fails, the other tags are still promoted. The task then fails, and RV(tags) contains the result of every
        tag.
    type: list
    elements: str
  target_tag:
    description: Tag in the target. The default is O(tag). Only with a single tag.
    type: str
  copy:
    description: Copy the image. V(false) moves it.
    type: bool
    default: true
  all_tags:
    description: Promote the image with all its tags.
    type: bool
    default: false
  attached:
    description:
      - Also promote the tags that are attached to the promoted images and to the images of an index. They have the form C(sha256-DIGEST),
        C(sha256-DIGEST.sig), C(.att) or C(.sbom), or the server lists them as referrers. They keep their names. A move copies those that
        belong to other tags, too.
      - The server can only promote tags. If the target lacks a referrer without a tag, it is named in a warning. If the server cannot list
        referrers, up to 100 stored manifests without a tag are read to find them. If the server does not report
        digests, attached tags are named in a warning.
      - An attached tag stays in source and target if the target has all of its content and more, such as a second signature. With O(force),
        it is promoted too.
      - With O(all_tags), V(false) promotes the other tags one by one.
    type: bool
    default: true
  pending:
    description:
      - The tags may not exist yet in check mode, because a CI build of the same run pushes them. A task in check mode then reports them as to
        be promoted instead of failing.
      - Without check mode, a missing tag fails in any case.
    type: bool
    default: false
  force:
    description: Promote even if the target already has the same content.
    type: bool
    default: false
  soak:
    description:
      - Promote only what has been in another stage for a while. Otherwise the task fails with the kind V(waiting), and promotes nothing.
      - An image has the age of its build, which the properties C(build.name) and C(build.number) of its manifest name. Without them, the
        task fails with the kind V(not_found). If several tags are promoted, each of their builds must have been in that stage.
      - The time of the newest promotion to that stage and the clock of the server decide, in check mode too. Nothing is decided about what
        is promoted already.
      - Without such a promotion, the task fails with the kind V(not_found). It also fails if a time of the server cannot be read.
    type: dict
    suboptions:
      status:
        description: Status to which the build of the image was promoted before, such as V(staged).
        type: str
        required: true
      for:
        description: Least time in that stage, as a number with C(w), C(d), C(h) or C(m), such as V(2h).
        type: str
        required: true
      check_only:
        description: Only decide, and promote nothing. Use it in a task before the first write of a release. A missing image passes, because
          an earlier task may push it.
        type: bool
        default: false
      project:
        description: Key of the project (JFrog Projects) that has the build.
        type: str
seealso:
  - module: delivery.toolchain.build_promote
  - module: delivery.toolchain.docker_image_info
"""

EXAMPLES = r"""
- name: Give a released image a second tag
  delivery.toolchain.docker_promote:
    repo: docker-release-local
    target_repo: docker-release-local
    image: delivery/agent
    tag: 1.0.0
    target_tag: stable

- name: Copy a tag to another repository
  delivery.toolchain.docker_promote:
    repo: docker-release-local
    target_repo: docker-staging-local
    image: delivery/agent
    tag: 1.0.0

- name: Copy several tags
  delivery.toolchain.docker_promote:
    repo: docker-release-local
    target_repo: docker-staging-local
    image: delivery/agent
    tags: [1.0.0, stable]

- name: Promote the image that the CI build of this playbook pushes, also with --check
  delivery.toolchain.docker_promote:
    repo: docker-staging-local
    target_repo: docker-release-local
    image: delivery/agent
    tag: 1.0.0
    pending: true

- name: Copy a tag whose build has been in staging for a day
  delivery.toolchain.docker_promote:
    repo: docker-staging-local
    target_repo: docker-release-local
    image: delivery/console
    tag: 2.0.0
    soak: {status: staged, for: 1d}

- name: Move an image with all its tags, and rename it
  delivery.toolchain.docker_promote:
    repo: docker-staging-local
    target_repo: docker-release-local
    image: delivery/agent
    target_image: archive/agent
    all_tags: true
    copy: false
"""

RETURN = r"""
source_digest:
  description: With O(tag), the manifest digest in the source. V(null) if the tag does not exist or the server does not report the digest.
  returned: success
  type: str
  sample: sha256:5d41402abc4b2a76b9719d911017c592ae76d4b5a0c4f7a1b9e1d5f2c3a4b5c6
target_digest:
  description:
    - With O(tag), the manifest digest in the target after the task, or the expected digest in check mode.
    - V(null) if the tag does not exist or the server does not report the digest.
  returned: success
  type: str
  sample: sha256:5d41402abc4b2a76b9719d911017c592ae76d4b5a0c4f7a1b9e1d5f2c3a4b5c6
tags:
  description: Results of the tags, followed by those of attached tags.
  returned: success, or if a tag is missing or its promotion failed
  type: list
  elements: dict
  contains:
    tag:
      description: Tag in the source.
      type: str
    target_tag:
      description: Tag in the target.
      type: str
    source_digest:
      description: Manifest digest in the source before the task. V(null) if the tag does not exist or the server does not report the digest.
      type: str
    target_digest:
      description:
        - Manifest digest in the target after the task, or the expected digest in check mode.
        - V(null) if the tag does not exist or the server does not report the digest.
      type: str
    action:
      description: V(promoted), V(unchanged) or V(failed).
      type: str
    error:
      description: Reason of a failed promotion.
      type: str
      returned: with V(failed), if the promotion was sent
message:
  description: Message of the server about the promotion. Empty in check mode and if nothing was sent.
  returned: success
  type: str
  sample: Promotion ended successfully
waiting:
  description: Why the task waits. Run it again later; nothing has failed.
  returned: on failure, with the kind V(waiting)
  type: dict
  contains:
    reason:
      description: A sentence with the object, the stage, the time that it must stay there, and since when it does.
      type: str
    until:
      description: Earliest time at which the task can pass (ISO 8601, UTC), or V(null) if it is unknown.
      type: str
  sample:
    reason: "the build 'agent' #12 must stay in 'staged' for 1d, since 2026-01-02T03:04:05.678Z"
    until: "2026-01-02T05:04:05.678Z"
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.images import docker_promote


def main() -> None:
    run(docker_promote.DockerPromoteOptions, docker_promote.DockerPromoteOperation)


if __name__ == "__main__":
    main()
