#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: oauth_consumer
short_description: Make the key and the certificate of an OAuth consumer
version_added: 1.0.0
description:
  - Makes what an issue tracker or a wiki has to know of a client that logs in by OAuth 1.0a. That is an RSA key (PKCS#8), which stays secret, and a
    self-signed certificate with its public half.
  - The administrator of the server registers RV(consumer.public_key) under RV(consumer.consumer_key). Afterwards O(private_key) is what the
    connection option C(oauth_private_key) names.
  - A certificate that runs out is made anew with the same key, so that what is registered stays good. A key is never replaced unless O(force) says so.
  - The private key is in its file alone, which nobody but its owner may ever read. It is in no return value and in no diff.
  - It speaks to no server and has no connection options.
author: delivery.toolchain contributors (@delivery-toolchain)
requirements: [cryptography]
extends_documentation_fragment:
  - delivery.toolchain.attributes
attributes:
  idempotent:
    description: A second run with the same options changes nothing, unless O(force) is set.
    support: partial
    details: With O(force) every run makes a new key.
options:
  private_key:
    description:
      - The file with the private key (mode V(0600), permissions of others are taken away). Its folder must be there.
      - A file that is there and holds no such key is an error.
    type: path
    required: true
  certificate:
    description:
      - The file with the certificate (mode V(0644) when it is made). Its folder must be there.
      - A certificate of another key or name is replaced. A file that is there and holds no certificate is an error.
    type: path
    required: true
  common_name:
    description: Name in the certificate, and the consumer key to register it under.
    type: str
    required: true
  key_size:
    description: Bits of a new key. A smaller key that is there is an error.
    type: int
    choices: [2048, 3072, 4096]
    default: 2048
  valid_days:
    description: How many days a new certificate is valid.
    type: int
    default: 365
  renew_before:
    description: A certificate that is valid for this many days or fewer is renewed.
    type: int
    default: 30
  force:
    description: Make a new key and certificate, whatever is there. The new public key has to be registered then.
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
  description: What the server has to know. In check mode what is still to be made is null.
  returned: success
  type: dict
  contains:
    consumer_key:
      description: The name to register the key under, O(common_name).
      type: str
      sample: toolchain
    public_key:
      description: The public key (PEM).
      type: str
      sample: "-----BEGIN PUBLIC KEY-----..."
    certificate:
      description: The certificate (PEM), for servers that want that instead.
      type: str
      sample: "-----BEGIN CERTIFICATE-----..."
    not_after:
      description: Until when the certificate is valid (UTC).
      type: str
      sample: "2027-01-05T09:00:00Z"
http:
  description:
    - Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
    - Nothing, as no server is asked.
  returned: always
  type: dict
error:
  description: Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.local import oauth_consumer


def main() -> None:
    runner.run_locally(oauth_consumer.OauthConsumerOptions, oauth_consumer.OauthConsumerOperation)


if __name__ == "__main__":
    main()
