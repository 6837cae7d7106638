# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that connect to the CI server over HTTP or over its SSH command interface."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  transport:
    description:
      - Transport to the server. V(ssh) runs the commands of the SSH interface of the server with the C(ssh) program of OpenSSH.
      - V(ssh) uses only keys, never prompts, and requires a known host key. It applies C(~/.ssh/config).
      - With V(ssh), O(timeout) applies to connecting and to the whole command. Nothing is retried.
    type: str
    choices: [http, ssh]
    default: http
  ssh_host:
    description: Host of the SSH interface. The default is the host of O(url).
    type: str
  ssh_port:
    description: Port of the SSH interface. The default is the port that the login page of the server announces.
    type: int
  ssh_user:
    description: Account on the CI server. The default is O(username), else the default of C(ssh).
    type: str
  ssh_key:
    description: File with the private key. If set, no other key is tried. By default, C(ssh) chooses the keys.
    type: path
  ssh_known_hosts:
    description: File with the known host keys. It replaces the file of the local account.
    type: path
"""
