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
  - Copies or moves one tag of an image, some or all of them to another repository, under its own name or another one.
  - A copy is done where the target holds the same manifest digest. Where the server shows tags only, the tag's name counts.
  - A move is done where the source is gone and the target is there. Where the source is there, it moves, whatever the target holds.
  - The digest of an index of several architectures stands for all that it lists.
  - A tag of the target that is overwritten is named in a warning and in the diff.
  - After the promotion both sides are looked at. A tag that is not in the target, or after a move still in the source, is a failure.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  repo:
    description: Key of the repository that the image is in, a local one.
    type: str
    required: true
  target_repo:
    description: Key of the repository that it goes to, a local one.
    type: str
    required: true
  image:
    description: Name of the image, as V(team/application).
    type: str
    required: true
  target_image:
    description: Name of the image in the target, where it is another one.
    type: str
  tag:
    description: The tag. One of O(tag), O(tags) and O(all_tags) is needed.
    type: str
  tags:
    description:
      - Several tags, each with its own name in the target. An empty list promotes nothing.
      - Where one of them is missing, none is promoted, and all missing ones are named.
      - A tag whose promotion fails does not keep the others from theirs; the task fails afterwards, and RV(tags) tells of each.
    type: list
    elements: str
  target_tag:
    description: The tag in the target, where it is another one. Only with O(tag).
    type: str
  copy:
    description: Copy; V(false) moves.
    type: bool
    default: true
  all_tags:
    description: Promote the image with all its tags.
    type: bool
    default: false
  force:
    description: Promote even where the target holds the same already.
    type: bool
    default: false
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
  description: With O(tag), the digest of its manifest in the source; V(null) where the tag is gone, and where the server does not tell.
  returned: success
  type: str
  sample: sha256:5d41402abc4b2a76b9719d911017c592ae76d4b5a0c4f7a1b9e1d5f2c3a4b5c6
target_digest:
  description: With O(tag), the digest of its manifest in the target after the task, or in check mode as it would be; V(null) as above.
  returned: success
  type: str
  sample: sha256:5d41402abc4b2a76b9719d911017c592ae76d4b5a0c4f7a1b9e1d5f2c3a4b5c6
tags:
  description: What became of each tag.
  returned: success, and where a tag is missing or its promotion failed
  type: list
  elements: dict
  contains:
    tag:
      description: The tag in the source.
      type: str
    target_tag:
      description: The tag in the target.
      type: str
    source_digest:
      description: Digest of its manifest in the source before the task; V(null) where the tag is gone, and where the server does not tell.
      type: str
    target_digest:
      description: Digest of its manifest in the target after the task, or in check mode as it would be; V(null) as above.
      type: str
    action:
      description: V(promoted), V(unchanged) or V(failed).
      type: str
    error:
      description: Why the promotion failed.
      type: str
      returned: with V(failed), where it was tried
message:
  description: What the server says about the promotion; empty in check mode and where nothing was sent.
  returned: success
  type: str
  sample: Promotion ended successfully
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description: Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.images import docker_promote


def main() -> None:
    runner.run("repo", docker_promote.DockerPromoteOptions, docker_promote.DockerPromoteOperation)


if __name__ == "__main__":
    main()
