#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: artifact_cleanup
short_description: Delete old items from the artifact repository manager by rules
version_added: 1.0.0
description:
  - Deletes what the rules name. Each rule stands by itself; what one of them deletes goes, once, and with a folder all that is in it.
  - One query for each rule, and one request for each item.
  - Check mode lists exactly what a run would delete, with sizes and reasons.
  - Each row of an answer is compared with the rule again, so that a server that ignores a part of the query does not lose more.
  - A deletion that fails does not hold up the others; the task fails in the end and tells of all.
  - A repository that is not there fails the task; this costs a request where a query has found nothing.
  - The server may have a trash, see M(delivery.toolchain.artifact_trash).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.repo
options:
  rules:
    description:
      - What to delete. An item has to match everything that its rule gives.
      - Globs have V(*) for any text, slashes included, and V(?) for one character.
    type: list
    elements: dict
    required: true
    suboptions:
      repo:
        description: Key of the repository, of a local one.
        type: str
        required: true
      path:
        description: Glob on the folder that the item is in; V(.) is the root of the repository.
        type: str
      name:
        description: Glob on the item's own name.
        type: str
      type:
        description:
          - V(file), V(folder), which is deleted with all that is in it, or V(any).
          - Not given it is V(file), and with O(rules[].keep_last_by=image) the folder of a tag.
          - A folder stays while a file in it is excluded or younger than O(rules[].created_before).
        type: str
        choices: [file, folder, any]
      depth:
        description: Number of the segments of the item's path; V(1) is what is in the root of the repository.
        type: int
      created_before:
        description:
          - Age from which on items are deleted, in weeks, days, hours or minutes, as V(4w), V(30d), V(12h) or V(90m).
          - It counts from the server's clock, not from that of this host.
        type: str
      properties:
        description:
          - Properties that the item must have, with one value or a list of values, all of them. A value may be a glob.
          - A property without a value is refused.
        type: dict
      keep_last:
        description:
          - How many of the newest items of each folder are kept, whatever their age.
          - What O(rules[].exclude) names does not count.
        type: int
      keep_last_by:
        description:
          - V(folder) counts the items that are in the same folder.
          - V(image) is for container images. The rule is then about tags, which are folders with a manifest, and counts the tags of
            an image. O(rules[].path) is a glob on the image, O(rules[].name) on the tag, and a tag is deleted as one item. Its age
            counts from the last push.
        type: str
        choices: [folder, image]
        default: folder
      exclude:
        description:
          - Globs on the full path, with or without the repository in front. What one of them matches is never deleted by this rule.
          - A glob that fits nothing of what the rule finds is warned of where the rule deletes something.
        type: list
        elements: str
  max_deletions:
    description: More items than this make the task fail before anything is deleted. A folder is one item.
    type: int
    default: 100
  parallel:
    description: Deletions at once, each on a connection of its own.
    type: int
    default: 4
  force:
    description: Allows rules that would empty a repository.
    type: bool
    default: false
notes:
  - A query has to give all that it finds. Where the server trims it, nothing is deleted.
  - O(rules[].properties) need a server whose query language knows properties, as in the dialect V(jfrog).
seealso:
  - module: delivery.toolchain.artifact_query
  - module: delivery.toolchain.artifact_trash
"""

EXAMPLES = r"""
- name: Delete snapshots that are older than four weeks, but not the last two of each folder
  delivery.toolchain.artifact_cleanup:
    rules:
      - repo: generic-snapshot-local
        path: nightly/*
        created_before: 4w
        keep_last: 2
        exclude: ["*/keep.txt"]
    max_deletions: 500

- name: Keep the newest three tags of each image
  delivery.toolchain.artifact_cleanup:
    rules:
      - repo: docker-release-local
        created_before: 30d
        keep_last: 3
        keep_last_by: image
"""

RETURN = r"""
deleted:
  description: What was, or in check mode would be, deleted by this task.
  returned: always
  type: list
  elements: dict
  contains:
    repo:
      description: Key of the repository.
      type: str
    path:
      description: Full path in the repository.
      type: str
    size:
      description: Bytes; of a folder those of all files in it.
      type: int
    created:
      description: When it was created, as the server writes it.
      type: str
    reason:
      description: Which rule deleted it, and why.
      type: str
  sample:
    - repo: generic-snapshot-local
      path: nightly/agent/1.txt
      size: 6
      created: "2025-01-01T12:00:00.000Z"
      reason: "rule 1: older than 4w, not among the newest 2 of 'nightly/agent'"
kept:
  description: What a rule names and would delete for its age, but does not, with C(repo), C(path) and C(reason).
  returned: always
  type: list
  elements: dict
gone:
  description: What another one deleted in the meantime, with C(repo), C(path) and C(reason).
  returned: always
  type: list
  elements: dict
failed_deletions:
  description: What could not be deleted, with C(repo), C(path) and C(reason), what went wrong.
  returned: always
  type: list
  elements: dict
reclaimed_bytes:
  description: Bytes of all that is in RV(deleted). Contents that other items have, too, or that go to the trash, stay on the server.
  returned: always
  type: int
  sample: 6
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.cleanup import (
    artifact_cleanup,
)


def main() -> None:
    runner.run(
        "repo", artifact_cleanup.ArtifactCleanupOptions, artifact_cleanup.ArtifactCleanupOperation
    )


if __name__ == "__main__":
    main()
