# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: docker_images
short_description: Container images of repositories with their tags
version_added: 1.0.0
description:
  - Returns all images of the given repositories with their tags, in the order of the repositories and of the server.
  - Use C(query) to always get a list, even of a single image.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.repo_plugin
  - delivery.toolchain.lookup_cache
  - delivery.toolchain.docker_images
options:
  _terms:
    description:
      - Keys of repositories.
      - C(repo/image) names a single image, C(repo/image:tag) and C(repo/image@sha256:...) also limit its tags.
    type: list
    elements: str
    required: true
seealso:
  - module: delivery.toolchain.docker_image_info
  - plugin: delivery.toolchain.docker_tags
    plugin_type: lookup
"""

EXAMPLES = r"""
- name: Show the names of all released images
  ansible.builtin.debug:
    msg: "{{ query('delivery.toolchain.docker_images', 'docker-release-local') | map(attribute='name') }}"
"""

RETURN = r"""
_list:
  description: Images with C(name) and C(tags). C(tags) is V(null) if the server lists the image but not its tags.
  type: list
  elements: dict
"""

from typing import Any

from ..module_utils._lib.repo.images.docker_image_info import (
    DockerImageInfoOperation,
    DockerImageInfoOptions,
)
from ..plugin_utils._lib import lookups


class LookupModule(lookups.QueryLookup):
    service, wanted = "repo", "the key of a repository"

    def rows(self, term: Any) -> list[Any]:
        named = {"image": term} if "/" in term else {"repo": term}
        options = lookups.parsed(DockerImageInfoOptions, {**self.get_options(), **named})
        return self.ask(named, lambda task: DockerImageInfoOperation(task, options).named())
