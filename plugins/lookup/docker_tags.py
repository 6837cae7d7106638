# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: docker_tags
short_description: Tags of container images
version_added: 1.0.0
description:
  - Returns all tags of the given images, in the order of the images and of the server.
  - Use C(query) to always get a list, even of a single tag. If an image does not exist, the lookup fails.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo_plugin
  - delivery.toolchain.lookup_cache
  - delivery.toolchain.docker_images
options:
  _terms:
    description:
      - Images, spelled as C(repo/image:tag) or C(repo/image@sha256:...), such as V(docker-local/team/application).
      - With O(repo), the name of the repository may be left out. A tag or a digest limits the result to tags that have it.
    type: list
    elements: str
    required: true
  repo:
    description: Key of the repository. Without it, the first segment of a term is the repository.
    type: str
seealso:
  - module: delivery.toolchain.docker_image_info
  - plugin: delivery.toolchain.docker_images
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Check whether a tag exists
  ansible.builtin.debug:
    msg: "{{ '1.0.0' in query('delivery.toolchain.docker_tags', 'delivery/agent', repo='docker-release-local') }}"
"""

RETURN = r"""
_list:
  description: The tags.
  type: list
  elements: str
"""

from typing import Any

from ..module_utils._lib.repo.images.docker_image_info import (
    DockerImageInfoOperation,
    DockerImageInfoOptions,
)
from ..plugin_utils._lib import lookups


class LookupModule(lookups.QueryLookup):
    service, wanted = "repo", "the name of an image"

    def rows(self, term: Any) -> list[Any]:
        named = {"image": term}
        options = lookups.parsed(DockerImageInfoOptions, {**self.get_options(), **named})
        return self.ask(
            named, lambda task: DockerImageInfoOperation(task, options).named()[0]["tags"]
        )
