#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: oauth_consumer
short_description: Create the key and the certificate of an OAuth consumer
version_added: 1.0.0
description:
  - Creates the credentials of an OAuth 1.0a client for an issue tracker or a wiki. These are a secret RSA key (PKCS#8), and a self-signed
    certificate with its public key.
  - The administrator of the server registers RV(consumer.public_key) for RV(consumer.consumer_key). O(private_key) is then the value of the
    connection option C(oauth_private_key).
  - An expiring certificate is renewed with the same key, so the registration stays valid. A key is only replaced with O(force).
  - The private key is stored only in its file, which only its owner can read at any time. It is never returned or shown in a diff.
  - The module connects to no server and has no connection options.
author: delivery.toolchain contributors (@delivery-toolchain)
requirements: [cryptography]
extends_documentation_fragment:
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: With O(force=true), every run creates a new key.
options:
  private_key:
    description:
      - File with the private key. Its mode is V(0600), and permissions of other users are removed. Its folder must exist.
      - If the file exists and contains no such key, the task fails.
    type: path
    required: true
  certificate:
    description:
      - File with the certificate, created with mode V(0644). Its folder must exist.
      - A certificate of another key or name is replaced. If the file exists and contains no certificate, the task fails.
    type: path
    required: true
  common_name:
    description: Name in the certificate. It is also the consumer key for the registration.
    type: str
    required: true
  key_size:
    description: Size of a new key in bits. If the existing key is smaller, the task fails.
    type: int
    choices: [2048, 3072, 4096]
    default: 2048
  valid_days:
    description: Validity of a new certificate in days.
    type: int
    default: 365
  renew_before:
    description: Renew a certificate that is valid for at most this number of days.
    type: int
    default: 30
  force:
    description: Create a new key and certificate even if they exist. The new public key must then be registered.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Make key and certificate, and renew the certificate in time
  delivery.toolchain.oauth_consumer:
    private_key: "{{ playbook_dir }}/consumer.pem"
    certificate: "{{ playbook_dir }}/consumer.crt"
    common_name: toolchain
  register: oauth
"""

RETURN = r"""
consumer:
  description: Data for the server. In check mode, values that do not exist yet are null.
  returned: success
  type: dict
  contains:
    consumer_key:
      description: Consumer key for the registration, O(common_name).
      type: str
      sample: toolchain
    public_key:
      description: The public key (PEM).
      type: str
      sample: "-----BEGIN PUBLIC KEY-----..."
    certificate:
      description: Certificate (PEM), for servers that require a certificate instead of the key.
      type: str
      sample: "-----BEGIN CERTIFICATE-----..."
    not_after:
      description: End of the validity of the certificate (UTC).
      type: str
      sample: "2027-01-05T09:00:00Z"
http:
  description:
    - Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
    - Nothing, as no server is asked.
  returned: always
  type: dict
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.atlassian import oauth_consumer


def main() -> None:
    run(oauth_consumer.OauthConsumerOptions, oauth_consumer.OauthConsumerOperation)


if __name__ == "__main__":
    main()
