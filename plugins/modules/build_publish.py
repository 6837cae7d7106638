#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: build_publish
short_description: Publish a build record in the artifact repository manager
version_added: 1.0.0
description:
  - Ensures that the record of a build has all specified data, and that the properties of its files identify the build.
  - Digests of files in repositories are read from the server. If a file does not exist, nothing is published.
  - A record with all this data is unchanged. If the record of the number has other content, the task fails with C(conflict), or replaces
    the record with O(replace).
  - Missing build properties of files are set again.
  - Not supported on servers that implement only the documented interface (dialect V(generic)).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes
options:
  build_name:
    description: Name of the build.
    type: str
    required: true
  build_number:
    description: Number of the build.
    type: str
    required: true
  project:
    description: Key of the project (JFrog Projects) that has the build. By default, the builds outside projects are used.
    type: str
  modules:
    description:
      - Modules of the build. Set exactly one of O(modules) and O(artifacts).
      - "An entry has C(id), C(type) (default C(generic)), C(artifacts) and C(dependencies). An artifact is an item (C(repo) and C(path)),
        or a C(name) with at least one of C(sha1), C(sha256) and C(md5); C(type) is its type. A dependency also has C(scopes)."
      - Accepts the C(modules) of a record that M(delivery.toolchain.build_info) returns, to move a build to another server. Other keys of a
        record are kept. A C(path) without C(repo) is then part of the record, and need not exist.
      - A dependency of a record (with C(id)) may lack digests. A module of the type C(build) refers to another build and needs no files.
        Empty strings count as not given.
      - Secrets in the C(properties) of a module are removed as in O(properties).
      - A build without any file or reference is rejected. A module without files next to other modules adds a warning.
    type: list
    elements: dict
  artifacts:
    description:
      - Files of a single module with the name of the build.
      - Accepts the C(artifacts) returned by M(delivery.toolchain.artifact_deploy).
    type: list
    elements: dict
    suboptions:
      repo:
        description: Key of the repository.
        type: str
      path:
        description: Path in the repository.
        type: str
      name:
        description: Name in the record. The default is the last segment of the path.
        type: str
      type:
        description: Type of the file. The default is its file name extension.
        type: str
      sha1:
        description: SHA-1 of the content. For an item, all digests are compared with those on the server.
        type: str
      sha256:
        description: SHA-256 of the content.
        type: str
      md5:
        description: MD5 of the content.
        type: str
      size:
        description: Ignored. M(delivery.toolchain.artifact_deploy) returns it.
        type: int
      action:
        description: Action as returned by M(delivery.toolchain.artifact_deploy). V(deleted) and V(absent) are rejected.
        type: str
      url:
        description: Ignored. URL of the file, as returned by C(artifact_deploy).
        type: str
  started:
    description:
      - Start time of the build, such as V(2026-01-02T03:04:05.678Z). The default is the start time of the existing record, else the current
        time.
      - If the existing record has another start time, the task fails with C(conflict), even with O(replace), because the server would keep
        both records.
    type: str
  ci_url:
    description: URL of the build on the CI server. User info is removed, other secrets are masked.
    type: str
  vcs:
    description:
      - Sources of the build, with C(url) or C(revision), and optionally C(branch) and C(message), the message of the newest commit. An
        empty string counts as not given.
      - User info in C(url) is removed, other secrets are masked.
    type: list
    elements: dict
  issues:
    description: Issues that belong to the build.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key of the issue.
        type: str
        required: true
      summary:
        description: Summary of the issue.
        type: str
      url:
        description: URL of the issue. User info is removed, other secrets are masked.
        type: str
  environment:
    description:
      - Environment variables of the build.
      - Two kinds of variables are left out, variables with a secret of this task in their value, and variables with names of secrets in any
        letter case, such as C(password), C(pass), C(secret), C(token), C(pat), C(key), C(credential), C(auth), C(jwt) and C(cookie).
      - User info in URLs is removed. Other secrets in a value are masked, such as private keys, C(Bearer ...), C(password=...) and
        C(sig=...). RV(withheld) lists all these variables.
    type: dict
  environment_exclude:
    description: Patterns of additional variable names to remove, in any letter case.
    type: list
    elements: str
  properties:
    description:
      - Properties of the record. Values are strings. A list is joined with commas.
      - Properties whose last word names a secret, such as C(db.password), are left out. Secrets in values are removed as in O(environment).
    type: dict
  mark_artifacts:
    description:
      - Whether to set C(build.name), C(build.number) and C(build.timestamp) on artifacts that are items. Promotion finds the artifacts by
        these properties.
      - For an item in a virtual repository, they are set in the repository that contains the item.
    type: bool
    default: true
  replace:
    description:
      - Replace a record of the same number with other content. What the task does not specify is removed from the record, unless O(keep)
        names it. The promotions and the start time are kept.
      - The server requires the delete permission.
    type: bool
    default: false
  keep:
    description:
      - Parts of the record that O(replace) keeps, apart from the entries that the task specifies. So several tasks can publish a module each.
      - A module that the task specifies gets exactly its files.
    type: list
    elements: str
    choices: [ci_url, environment, issues, modules, properties, vcs]
  parallel:
    description: Number of parallel requests.
    type: int
    default: 4
seealso:
  - module: delivery.toolchain.artifact_deploy
  - module: delivery.toolchain.build_promote
  - module: delivery.toolchain.build_record
"""

EXAMPLES = r"""
- name: Publish the record of a build
  delivery.toolchain.build_publish:
    build_name: toolchain
    build_number: "1"
    artifacts:
      - repo: generic-snapshot-local
        path: agent/1.0.0/agent.txt
    ci_url: https://ci.example.com/job/toolchain/1/
    vcs:
      - url: https://git.example.com/toolchain.git
        revision: 5f2c1e0d9b8a7c6d5e4f3a2b1c0d9e8f7a6b5c4d
        branch: main
    issues:
      - key: REL-2
        summary: Publish build records
    environment:
      RELEASE: "1.0.0"
"""

RETURN = r"""
build:
  description: Record as returned by M(delivery.toolchain.build_info). In check mode, the record that would be sent.
  returned: always
  type: dict
  sample:
    name: toolchain
    number: "1"
    started: "2026-01-02T03:04:05.678+0000"
    properties: {buildInfo.env.RELEASE: "1.0.0"}
    modules:
      - id: toolchain
        type: generic
        artifacts:
          - name: VERSION
            type: file
            path: toolchain/1.0.0/VERSION
            sha256: 59854984853104df5c353e2f681a15fc7924742f9a2e468c29af248dce45ce03
withheld:
  description:
    - Places of the variables and properties that were left out or masked because they contain secrets. The task adds a warning with their
      number.
  returned: success
  type: list
  elements: str
  sample: [environment.DB_PASSWORD, "modules[0].properties.db.url"]
marked:
  description: Items whose build properties were set, or would be set in check mode, as repository and path.
  returned: always
  type: list
  elements: str
  sample: [generic-staging-local/toolchain/1.0.0/VERSION]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.builds import build_publish


def main() -> None:
    run(build_publish.BuildPublishOptions, build_publish.BuildPublishOperation)


if __name__ == "__main__":
    main()
