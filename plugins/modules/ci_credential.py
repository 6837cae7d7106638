#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ci_credential
short_description: Create, change or delete a credential of the CI server
version_added: 1.0.0
description:
  - Manages credentials in the store of the system or of a folder. Jobs can use a credential at any time, because it is updated in place,
    never deleted and created again.
  - To change any field, the task needs the secrets, because the server shows no secret, and empties a secret that an update does not
    send.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.ci
  - delivery.toolchain.attributes
attributes:
  idempotent:
    support: partial
    details: The server does not show secrets. With O(update_secret=always), every run writes the secret.
options:
  entries:
    description: Manages many credentials with the other options.
    type: list
    elements: dict
    suboptions: &entry
      id:
        description: ID of the credential.
        type: str
        required: true
      folder:
        description: Folder whose store has the credential. Without it, the store of the system.
        type: str
      domain:
        description: Domain in the store. V(_) is the global one. A domain must exist.
        type: str
        default: _
      kind:
        description:
          - Kind of the credential. Without it, the kind on the server, and V(username_password) for a new credential.
          - V(xml) uses the complete XML in O(config), for the classes of other plugins.
          - A credential does not change its kind.
        type: str
        choices: [username_password, secret_text, secret_file, ssh_key, certificate, xml]
      scope:
        description: V(system) hides the credential from jobs. Without it, a new credential is V(global).
        type: str
        choices: [global, system]
      description:
        description: Description. The module adds a short record of the secret to it, which it removes again when it shows the description.
        type: str
      login_username:
        description:
          - User name in the credential, for V(username_password) and V(ssh_key).
          - A new V(username_password) requires it; an empty string creates a credential without a user name.
        type: str
      login_password:
        description: Password in the credential, for V(username_password) and V(certificate).
        type: str
      secret:
        description: Secret of a V(secret_text), or content of a V(secret_file).
        type: str
      src:
        description: File with the content of a V(secret_file). It may be binary.
        type: path
      file_name:
        description: Name of the V(secret_file) for builds. For a new credential, the default is the name of O(src), or O(id).
        type: str
      private_key:
        description: Private key of an V(ssh_key).
        type: str
      passphrase:
        description: Passphrase of O(private_key). Without it, the key has none.
        type: str
      keystore:
        description: PKCS#12 file of a V(certificate), in Base64.
        type: str
      config:
        description: XML of the credential with all its secrets in clear, for V(xml).
        type: str
      update_secret:
        description:
          - When the secret of an existing credential is written.
          - The server never shows a secret. V(on_change) compares it with the record in the description, a salted digest, and with O(fingerprint).
            Without a record, the secret is not written, the task warns, and RV(credential) is V(unknown).
          - V(always) writes the secret and is always changed. V(on_create) never compares it.
          - If any other field changes, the secret is sent as well, because the server would empty it.
        type: str
        choices: [on_change, always, on_create]
        default: on_change
      fingerprint:
        description:
          - Fingerprint of the credential when its secret was known to be right, as the task returned it in RV(credential).
          - The server changes it with each write of a secret. If the server has another one, somebody else has written the credential, and
            its secret counts as different. If the server has none, because no build has used the credential, the secret is V(unknown).
          - After a write by the module, the next tasks warn with the new fingerprint.
        type: str
      state:
        description: V(absent) deletes the credential.
        type: str
        choices: [present, absent]
        default: present
  id:
    description: ID of the credential.
    type: str
  <<: *entry
notes:
  - A person who may see a credential may see its description, with the digest of the secret. The digest is salted and slow to compute, but a short
    or common password can be guessed from it. Use generated secrets.
  - If somebody changes the secret on the server and keeps the description, the record still tells the old secret. Only O(fingerprint)
    shows such a change. Without O(fingerprint) the secret is V(unknown), also if the record and the secret of the task agree.
seealso:
  - module: delivery.toolchain.ci_job
"""

EXAMPLES = r"""
- name: Keep a login for deployments
  delivery.toolchain.ci_credential:
    id: deploy
    kind: username_password
    description: Deploys releases
    login_username: deployer
    login_password: "{{ deploy_password | default('example-password') }}"

- name: Keep a token in the store of a folder
  delivery.toolchain.ci_credential:
    folder: delivery
    id: release-token
    kind: secret_text
    secret: "{{ release_token | default('example-token') }}"

- name: Keep several credentials
  delivery.toolchain.ci_credential:
    entries:
      - {id: git, kind: username_password, login_username: git, login_password: "{{ git_password | default('example-password') }}"}
      - {id: old-login, state: absent}
"""

RETURN = r"""
credential:
  description:
    - Credential without its secrets. Null if it is absent.
    - C(secret) shows how the secret of the task compares with the one on the server before the task, as V(same), V(different) or
      V(unknown). It is V(same) for a new credential, and if O(fingerprint) proves it.
    - C(fingerprint) is that of the server, or null if the task did not need it, has changed the credential, or the server has none.
  returned: success, without O(entries)
  type: dict
  sample: {id: deploy, kind: username_password, description: Deploys releases, folder: "", domain: _, secret: unknown, fingerprint: null}
results:
  description: With O(entries), an item for each entry, with the keys of RV(credential), C(name), C(action), C(changes), and C(error) if it failed.
  returned: success, with O(entries)
  type: list
  elements: dict
  sample: [{name: deploy, action: created, changes: []}]
unknown:
  description: Names of the fields that cannot be compared. Each item of RV(results) has this key too.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [secret]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.ci.credentials import ci_credential


def main() -> None:
    run(ci_credential.CiCredentialOptions, ci_credential.CiCredentialOperation)


if __name__ == "__main__":
    main()
