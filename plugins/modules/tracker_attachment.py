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
  - Downloads several attachments in parallel if they are missing in a folder or differ from the files in it.
  - A file is written only if it is complete. Its size is compared with the size on the server. A web page of the server, such as a login
    form, is never stored as an attachment.
  - A file is unchanged if its size is that of the attachment, and its modification time is the creation time of the attachment. Downloaded
    files get that time. If the server does not report the time, they get the time of the download, and the fraction of the second
    identifies the attachment. If the times differ, or the server reports no size, the content is downloaded and compared, up to
    O(compare_max).
  - File names from the server are made safe. Path separators, control characters and a leading dot become V(_), device names get the prefix
    V(_), and names that are too long for file systems are shortened. If names are equal (ignoring letter case), all of these files get
    C(-<id>) before the extension, whether or not O(patterns) selects them.
  - The server may redirect to another host, which receives no credentials.
  - Other files in the folder are kept.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.tracker
  - delivery.toolchain.attributes
options:
  issue:
    description: Key or ID of the issue.
    type: str
    required: true
  dest:
    description: Folder for the attachments. It is created if it does not exist.
    type: path
    required: true
  patterns:
    description:
      - Patterns such as V(*.log) for the file names on the server. An attachment is downloaded if any pattern matches. Letter case is
        significant.
      - By default, all attachments are downloaded. An empty list downloads none, with a warning. A pattern without a match also adds a
        warning.
    type: list
    elements: str
  max_size:
    description: Maximum size in bytes. Larger attachments are skipped.
    type: int
  compare_max:
    description:
      - Maximum size in bytes of an existing file whose content is compared with the attachment. A larger file that has the size of the attachment,
        or whose attachment has no reported size, counts as unchanged, with a warning. RV(unknown) lists it.
      - Does not limit downloads of missing files, or of files of another size. See O(max_size).
    type: int
    default: 67108864
  replace:
    description:
      - Whether an existing file with other content is overwritten.
      - With V(false) such a file is kept, with a warning, and its action is V(conflict). The task does not fail, and other attachments are
        downloaded. Only a file that appears at the path during the download is an error.
    type: bool
    default: true
  parallel:
    description: Maximum number of parallel downloads.
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

- name: Download without overwriting files that somebody edited
  delivery.toolchain.tracker_attachment:
    issue: REL-2
    dest: attachments/REL-2
    replace: false
  register: kept
  failed_when: kept is failed or kept.attachments | selectattr('action', 'eq', 'conflict') | list | length > 0
"""

RETURN = r"""
attachments:
  description:
    - Attachments that match O(patterns), in the order of the server, as id, filename (on the server), path, size (bytes) and action.
    - The action is V(downloaded), V(unchanged), V(skipped) (too large) or V(conflict) (a file with other content is kept, see
      O(replace)). In check mode, it is the expected action.
    - If the server reports no size, the size is null until the file exists.
    - If the task fails, attachments that were not downloaded are missing in the list.
  returned: success, or failure of a download
  type: list
  elements: dict
  sample:
    - {"id": "501", "filename": "server log.txt", "path": "attachments/REL-2/server log-501.txt", "size": 31, "action": "downloaded"}
unknown:
  description: Attachments that were compared by name and size only, each as key of the issue and name. A warning names each file.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: ["REL-2: disk.img"]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.tracker.issues import tracker_attachment


def main() -> None:
    run(tracker_attachment.TrackerAttachmentOptions, tracker_attachment.TrackerAttachmentOperation)


if __name__ == "__main__":
    main()
