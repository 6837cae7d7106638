#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_image_info
short_description: List container images and their tags
version_added: 1.0.0
description:
  - Lists the tags of an image, or all images of a repository with theirs.
  - The list is complete. A server that announces a page and does not give it is an error.
  - An image whose tags have all been deleted may still be there, without tags. An image that is not there is an error of the
    kind C(not_found).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
  - delivery.toolchain.attributes.repo
  - delivery.toolchain.docker_images
options:
  repo:
    description: Key of the repository.
    type: str
    required: true
  image:
    description:
      - Name of the image, as V(team/application).
      - Not given means all images; their tags are read side by side, one request or more for each image.
    type: str
seealso:
  - module: delivery.toolchain.docker_promote
  - plugin: delivery.toolchain.docker_images
    plugin_type: lookup
  - plugin: delivery.toolchain.docker_tags
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Read the tags of an image
  delivery.toolchain.docker_image_info:
    repo: docker-release-local
    image: delivery/agent
  register: agent

- name: Read all images of a repository with their tags
  delivery.toolchain.docker_image_info:
    repo: docker-release-local
  register: released
"""

RETURN = r"""
tags:
  description: The tags of the image, in the order of the server.
  returned: success, with O(image)
  type: list
  elements: str
  sample: [1.0.0, stable]
images:
  description: The images, in the order of the server.
  returned: success, without O(image)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the image.
      type: str
      returned: success
      sample: delivery/agent
    tags:
      description: Its tags; V(null) where the server lists the image, but not its tags, which is a warning.
      type: list
      elements: str
      returned: success
      sample: [1.0.0, stable]
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
from ansible_collections.delivery.toolchain.plugins.module_utils.repo.images import (
    docker_image_info,
)


def main() -> None:
    runner.run(
        "repo", docker_image_info.DockerImageInfoOptions, docker_image_info.DockerImageInfoOperation
    )


if __name__ == "__main__":
    main()
