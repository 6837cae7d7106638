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
  - Deletes the items that match rules. Rules are independent. An item that matches any rule is deleted once. Deleting a folder deletes its
    content.
  - Counts, keeps and deletes versions, not files. The files of a unique Maven snapshot (same artifact, version, timestamp and number) are one
    version. A signature or checksum (C(X.asc), C(.sig), C(.prov), C(.md5), C(.sha1), C(.sha256), C(.sha512)) belongs to the file C(X). If a
    rule selects one file of a version, it selects the version. A pattern that matches only the signature or the checksum does not select
    the file.
  - Rules do not select files that the server computes, which are C(maven-metadata.xml), and the index files of Conan, Debian, Helm, npm, PyPI
    and RPM repositories. A warning gives their number. A rule with the exact O(rules[].name) of such a file, of a signature or of a checksum
    deletes it alone.
  - Sends a query per rule, further queries for the files next to deleted files if the rule does not select whole folders, and a request
    per deleted item. Before it deletes tags of a container image, it reads the manifest of every tag
    of the image, with a request per tag.
  - Items that belong to a container image are kept and deleted together with the image. Rules neither select nor count them. They are tags
    of the forms C(sha256-DIGEST), C(sha256-DIGEST.sig), C(.att) and C(.sbom), manifests with a C(subject), and manifests without a tag
    that an index lists. If the image of such an item does not exist, the item is kept, with a warning.
  - A tag that a kept index lists is kept and not counted. If an index is deleted, manifests that nothing else references are deleted
    after it. If an index cannot be read, nothing is deleted.
  - Check mode lists exactly the items that a run would delete, with sizes and reasons.
  - The rows of the response are compared with the rule again. A server that ignores part of the query therefore cannot cause further
    deletions.
  - If a deletion fails, the other deletions continue. The task then fails and reports all errors.
  - If a repository does not exist, the task fails. This check costs a request if a query finds nothing.
  - The server may have a trash, see M(delivery.toolchain.artifact_trash).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  rules:
    description:
      - Rules that select the items to delete. An item must match all conditions of its rule.
      - In patterns, V(*) and V(?) match within a segment, and V(**) matches across segments.
    type: list
    elements: dict
    required: true
    suboptions:
      repo:
        description: Key of a local repository. A virtual or remote repository is rejected, because it stores no items itself.
        type: str
        required: true
      path:
        description: Pattern for the folder that contains the item. V(.) is the root of the repository, V(agent/**) any folder below V(agent).
        type: str
      name:
        description: Pattern for the name of the item.
        type: str
      type:
        description:
          - V(file), V(any), or V(folder), which is deleted with its content.
          - The default is V(file), or the folder of a tag with O(rules[].keep_last_by=image).
          - A folder is kept while it contains a file that is excluded or younger than O(rules[].created_before).
        type: str
        choices: [file, folder, any]
      depth:
        description: Number of segments in the path of the item. V(1) selects the items in the root of the repository.
        type: int
      created_before:
        description:
          - Minimum age of deleted items in weeks, days, hours or minutes, such as V(4w), V(30d), V(12h) or V(90m).
          - The age is computed with the clock of the server, not of this host.
        type: str
      properties:
        description:
          - Properties that the item must have. A value is a string or a list of strings, all of which must match. A value may contain V(*) for any
            characters.
          - A property without a value is rejected.
        type: dict
      keep_last:
        description:
          - Number of newest versions to keep per folder, whatever their age. Unique Maven snapshots are ordered by the time and number in their
            names, other versions by their newest file.
          - A snapshot is also kept if it has a file without a classifier that none of the kept newer snapshots has. If only a jar was
            deployed again, for example, the POM of an older snapshot is still in use.
          - Versions with an item that matches O(rules[].exclude) or has a property of O(rules[].without_properties) are not counted.
        type: int
      keep_last_by:
        description:
          - V(folder) counts the items in the same folder.
          - V(image) selects tags of container images (folders with a manifest) and counts the tags of an image. O(rules[].path) is a pattern
            for the image, O(rules[].name) for the tag. A tag is deleted as a single item. Its age is the time since the last push.
        type: str
        choices: [folder, image]
        default: folder
      exclude:
        description:
          - Patterns for the full path, with or without the repository as prefix. This rule never deletes matching items. A trailing slash
            matches the content of a folder.
          - If the rule deletes items, a pattern that matches none of the found items adds a warning. If it would match a deleted item,
            or an item in a deleted folder, across folders, the task fails before the first deletion.
          - If a pattern matches one file of a version, all of its files are kept.
        type: list
        elements: str
      without_properties:
        description:
          - Names of properties. The rule never deletes an item with one of these properties, nor the version, image or folder with this
            item.
          - Requires a server with properties in its query language, as in the dialect V(jfrog).
        type: list
        elements: str
        version_added: 1.0.0
      released_in:
        description:
          - Key of a local repository. The rule only selects snapshots in Maven layout, if this repository contains their release
            version. Snapshots are files, or folders with names that end with C(-SNAPSHOT).
          - Cannot be combined with O(rules[].keep_last_by=image).
        type: str
        version_added: 1.0.0
  max_deletions:
    description:
      - Maximum number of deleted versions. If more match, the task fails and deletes nothing. A folder is a single item, as is a file that
        does not belong to a version.
      - What is deleted because it belongs to a deleted image does not count.
    type: int
    default: 100
  parallel:
    description: Number of parallel deletions. Every deletion uses its own connection.
    type: int
    default: 4
  force:
    description: Allow rules that empty a repository.
    type: bool
    default: false
notes:
  - A query must return its complete result. If the server truncates the result, nothing is deleted.
  - O(rules[].properties) requires a server with properties in its query language, as in the dialect V(jfrog).
seealso:
  - module: delivery.toolchain.artifact_info
  - module: delivery.toolchain.artifact_trash
"""

EXAMPLES = r"""
- name: Delete snapshots older than four weeks, but keep the newest two per folder
  delivery.toolchain.artifact_cleanup:
    rules:
      - repo: generic-snapshot-local
        path: nightly/*
        created_before: 4w
        keep_last: 2
        exclude: ["**/keep.txt"]
    max_deletions: 500

- name: Delete snapshots of released versions, unless a test report is attached
  delivery.toolchain.artifact_cleanup:
    rules:
      - repo: generic-snapshot-local
        released_in: generic-release-local
        without_properties: [test.report]
        created_before: 2w

- name: Keep the newest three tags per image
  delivery.toolchain.artifact_cleanup:
    rules:
      - repo: docker-release-local
        created_before: 30d
        keep_last: 3
        keep_last_by: image
"""

RETURN = r"""
deleted:
  description: Items that this task deleted, or would delete in check mode.
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
      description: Size in bytes. The size of a folder is the sum of its files.
      type: int
    created:
      description: Creation time in the format of the server.
      type: str
    reason:
      description: The rule that deleted the item, and the reason. C(part of 'PATH') names the image to which the item belongs.
      type: str
  sample:
    - repo: generic-snapshot-local
      path: nightly/agent/1.txt
      size: 6
      created: "2025-01-01T12:00:00.000Z"
      reason: "rule 1: older than 4w, not among the newest 2 of 'nightly/agent'"
kept:
  description: Items that match a rule and are old enough, but are kept, with C(repo), C(path) and C(reason).
  returned: always
  type: list
  elements: dict
gone:
  description: Items that another client deleted in the meantime, with C(repo), C(path) and C(reason).
  returned: always
  type: list
  elements: dict
failed_deletions:
  description: Items that could not be deleted, with C(repo), C(path) and the error as C(reason).
  returned: always
  type: list
  elements: dict
reclaimed_bytes:
  description: Bytes of all items in RV(deleted). The server keeps content that other items share, or that is in the trash.
  returned: always
  type: int
  sample: 6
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.cleanup import artifact_cleanup


def main() -> None:
    run(artifact_cleanup.ArtifactCleanupOptions, artifact_cleanup.ArtifactCleanupOperation)


if __name__ == "__main__":
    main()
