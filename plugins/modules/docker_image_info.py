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
  - Lists the tags of an image, or all images of a repository with their tags.
  - The list is complete. If the server announces a page and does not return it, the task fails.
  - An image whose tags were all deleted may still exist without tags. If an image does not exist, the task fails with the kind
    C(not_found).
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo
  - delivery.toolchain.attributes.info
  - delivery.toolchain.docker_images
options:
  repo:
    description: Key of the repository. Without it, the first segment of O(image) is the repository.
    type: str
  image:
    description:
      - The image, such as V(team/application). It may be spelled as C(repo/image).
      - C(image:tag) and C(image@sha256:...) return only the tags that match. If there is none, the task fails.
      - By default, all images are listed. Their tags are read in parallel, with at least a request per image.
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
  description: Tags of the image, in the order of the server.
  returned: success, with O(image)
  type: list
  elements: str
  sample: [1.0.0, stable]
images:
  description: Images of the repository, in the order of the server.
  returned: success, without O(image)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the image.
      type: str
      sample: delivery/agent
    tags:
      description: Tags of the image. V(null) if the server lists the image but not its tags, which adds a warning.
      type: list
      elements: str
      sample: [1.0.0, stable]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.repo.images import docker_image_info


def main() -> None:
    run(docker_image_info.DockerImageInfoOptions, docker_image_info.DockerImageInfoOperation)


if __name__ == "__main__":
    main()
