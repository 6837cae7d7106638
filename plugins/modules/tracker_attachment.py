#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: tracker_attachment
short_description: Download the attachments of an issue
version_added: 1.0.0
description:
  - Downloads the attachments that are missing in a folder, or that differ from the files there, several at once.
  - A file appears whole or not at all. Its size is compared with what the server says of it, and a page of the server (as a login form) is never
    taken for an attachment.
  - A file counts as unchanged where it has the size of the attachment and, as its time, the time at which that was created; downloaded files get that
    time. Where the server does not tell it, files get the time of the download, with a mark of the attachment in place of the part of a second.
    Where the time differs, or the server tells no size, the bytes are compared, which means to read them from the server.
  - Files get the server's names made safe. Path separators, control characters and a leading dot become V(_), names of devices get a V(_) in front,
    and names that no file system takes are cut. Where names are equal (also but for small letters and capitals), each gets C(-<id>) before
    its extension, whichever of them O(patterns) names.
  - The server may hand on to another host, which gets no credentials.
  - What else is in the folder stays as it is.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.tracker
options:
  issue:
    description: Key (or id) of the issue.
    type: str
    required: true
  dest:
    description: The folder to download into. It is made where it is missing.
    type: path
    required: true
  patterns:
    description:
      - Globs as V(*.log), of which one must match the server's name of an attachment; small letters and capitals differ.
      - Not given means all attachments, an empty list none, with a warning. A pattern that fits no attachment is warned of, too.
    type: list
    elements: str
  max_size:
    description: Attachments with more bytes than this are skipped.
    type: int
  parallel:
    description: Most attachments to download at once.
    type: int
    default: 4
  state:
    description: V(present) downloads.
    type: str
    choices: [present]
    default: present
seealso:
  - module: delivery.toolchain.tracker_issue_info
"""

EXAMPLES = r"""
- name: Download the attachments of an issue
  delivery.toolchain.tracker_attachment:
    issue: REL-2
    dest: attachments/REL-2
  register: attachments

- name: Download logs of at most 10 MB
  delivery.toolchain.tracker_attachment:
    issue: REL-2
    dest: logs
    patterns: ["*.log", "*.txt"]
    max_size: 10000000
"""

RETURN = r"""
attachments:
  description:
    - The attachments that O(patterns) names, in the order of the server, as id, filename (the server's), path, size (bytes) and action.
    - The action is V(downloaded), V(unchanged) or V(skipped) (too large). In check mode it is what would be done.
    - Where the server tells no size, it is null until the file is there.
    - If the task fails, those whose files are as they should be.
  returned: success, or failure of a download
  type: list
  elements: dict
  sample:
    - {"id": "501", "filename": "server log.txt", "path": "attachments/REL-2/server log-501.txt", "size": 31, "action": "downloaded"}
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
from ansible_collections.delivery.toolchain.plugins.module_utils.tracker.issues import (
    tracker_attachment,
)


def main() -> None:
    runner.run(
        "tracker",
        tracker_attachment.TrackerAttachmentOptions,
        tracker_attachment.TrackerAttachmentOperation,
    )


if __name__ == "__main__":
    main()
