# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of modules that reach the CI server over HTTP or over its SSH command interface."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  transport:
    description:
      - The way to the server. V(ssh) gives the commands of its SSH interface, with the program C(ssh) of OpenSSH.
      - Over V(ssh) only keys are used, nothing is asked for, the host's key must be a known one, and the O(timeout) counts
        for connecting and for the whole command. What C(~/.ssh/config) says of the host counts. Nothing is tried again.
    type: str
    choices: [http, ssh]
    default: http
  ssh_host:
    description: Where the SSH interface is. The default is the host of O(url).
    type: str
  ssh_port:
    description: Its port. The default is the one that the server names on its login page.
    type: int
  ssh_user:
    description: The account on the CI server. The default is O(username), then what C(ssh) takes itself.
    type: str
  ssh_key:
    description: The file with the private key, and then no other key is tried. The default are the keys that C(ssh) finds.
    type: path
  ssh_known_hosts:
    description: The file with the keys of known hosts, in place of the account's own.
    type: path
"""
