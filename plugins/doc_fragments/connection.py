# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options, a section per service: `repo` for modules, `repo_plugin` for lookups, and so on."""

from __future__ import annotations

import yaml

_SETTINGS = """
options:
  url:
    description: Base URL of the service, with its context path. Required.
    type: str
  validate_certs:
    description: Whether to verify the certificate of the server.
    type: bool
    default: true
  ca_path:
    description: File or folder with trusted CA certificates.
    type: path
  client_cert:
    description: PEM file with the client certificate, and with its key unless O(client_key) is set.
    type: path
  client_key:
    description: PEM file with the key of the client certificate.
    type: path
  timeout:
    description: Seconds to wait for the connection, and for the response.
    type: float
    default: 30
  retries:
    description: Number of retries of a request that changes nothing, or that the server certainly did not process.
    type: int
    default: 3
  retry_max_wait:
    description: Maximum wait before a retry in seconds. If the server asks for more, there is no retry.
    type: float
    default: 60
"""

_LOGIN = """
options:
  username:
    description: User for HTTP basic authentication. Requires O(password).
    type: str
    aliases: [user]
  password:
    description: {password}
    type: str
  credentials_file:
    description: File in netrc format, read only if no other credential is set.
    type: path
"""

_TOKEN = """
options:
  token:
    description: Bearer token.
    type: str
"""

_OAUTH = """
options:
  oauth_consumer_key:
    description: Consumer key of OAuth 1.0a.
    type: str
  oauth_private_key:
    description: Private key of the consumer, as PEM content or the path of a PEM file.
    type: str
  oauth_access_token:
    description: Access token granted to the consumer.
    type: str
  oauth_access_token_secret:
    description: Secret of the access token. The RSA signature methods need none.
    type: str
  oauth_signature_method:
    description: Signature method. The default is V(RSA-SHA1).
    type: str
    choices: [RSA-SHA1, RSA-SHA256, RSA-SHA512]
"""

_REPO = """
options:
  api_key:
    description: API key. Artifactory is retiring these keys, so use O(token) instead.
    type: str
  dialect:
    description: Interface of the server. V(jfrog) is JFrog Artifactory, V(auto) detects it.
    type: str
    choices: [auto, generic, jfrog]
    default: auto
  vendor:
    description: Vendor name in the C(generic) dialect, as in the header C(X-Vendor-Art-Api).
    type: str
    default: Vendor
  platform_url:
    description: Base URL of the platform. The default is O(url) without its last segment C(artifactory).
    type: str
"""

_OIDC = """
options:
  oidc_provider:
    description: Name of the OpenID Connect provider on the platform.
    type: str
  oidc_token:
    description: Identity token of the CI server or cluster. It is exchanged for an access token.
    type: str
  oidc_token_file:
    description: File with the identity token. It is read again for each exchange.
    type: path
  oidc_project_key:
    description: Key of the project to which the identity mapping belongs.
    type: str
  oidc_identity_mapping_name:
    description: Name of the identity mapping, if the claims of the token do not select one.
    type: str
"""

_OAUTH2 = """
options:
  oauth2_client_id:
    description: Client id of an OAuth 2.0 credential of a cloud service account. Requires O(cloud_id).
    type: str
  oauth2_client_secret:
    description: Client secret. It is exchanged for an access token.
    type: str
"""

_TRACKER = """
options:
  dialect:
    description: Type of the server. V(auto) detects it.
    type: str
    choices: [auto, server, cloud]
    default: auto
  accept_language:
    description: Language of names in responses, such as V(en), instead of that of the account.
    type: str
"""

_CLOUD = """
options:
  cloud_id:
    description: Id of an Atlassian Cloud site, whose requests then go to the gateway. V(auto) reads it from O(url).
    type: str
  cloud_gateway:
    description: Base URL of the gateway.
    type: str
    default: https://api.atlassian.com
  oauth2_url:
    description: Base URL of the token service for O(oauth2_client_id).
    type: str
    default: https://auth.atlassian.com
"""

_WIKI = """
options:
  dialect:
    description: Interface of the server. V(server) is one that you host; V(auto) detects it.
    type: str
    choices: [auto, server, cloud_v1, cloud_v2]
    default: auto
"""

_ANALYSIS = """
options:
  username:
    description: User of the server. The default is the user of the only matching line of the token file.
    type: str
    aliases: [user]
  ltoken:
    description: Login token of the user.
    type: str
  ltoken_file:
    description: File with tokens that C(kwauth) wrote. The default is E(KLOCWORK_LTOKEN), else C(~/.klocwork/ltoken).
    type: path
  token_json:
    description: Output of C(kwauth --print-auth-info), for releases from 2024.3 on.
    type: str
"""

_GUIDE = "https://github.com/delivery-toolchain/delivery.toolchain/blob/main/docs/connections.md"
_PARTS = {
    "repo": (_SETTINGS, _LOGIN, _TOKEN, _REPO, _OIDC),
    "tracker": (_SETTINGS, _LOGIN, _TOKEN, _OAUTH, _OAUTH2, _TRACKER, _CLOUD),
    "wiki": (_SETTINGS, _LOGIN, _TOKEN, _OAUTH, _OAUTH2, _WIKI, _CLOUD),
    "ci": (_SETTINGS, _LOGIN),
    "analysis": (_SETTINGS, _ANALYSIS),
}


#: Ansible reads these options of a lookup from the environment. It does not read credentials, because they must all come from the same
#: source: the connection reads them.
_SETTINGS_BY_ENVIRONMENT = (
    "url",
    "validate_certs",
    "ca_path",
    "client_cert",
    "client_key",
    "timeout",
    "retries",
    "retry_max_wait",
    "dialect",
    "vendor",
    "platform_url",
    "accept_language",
    "cloud_id",
    "cloud_gateway",
    "oauth2_url",
)


def _fragment(service: str, *, plugin: bool = False) -> str:
    """Return the connection options of a service as YAML.

    :param plugin: whether to add the variables and environment variables that plugins read
    """
    options: dict[str, dict[str, object]] = {}
    prefix = service.upper()
    password = "Password or API token of the user." if service == "ci" else "Password of the user."
    for part in _PARTS[service]:
        options.update(yaml.safe_load(part.replace("{password}", password))["options"])
    defaults = "" if plugin else "for a play with C(module_defaults), "
    note = (
        f"O(url) and the other options of the connection can be set {defaults}as variables such as"
        f" C(toolchain_{service}_url), or in the environment, such as E(TOOLCHAIN_{prefix}_URL)."
        " Credentials are read from the first place that has one."
        f" L(Connections,{_GUIDE}) describes logins, retries and certificates."
    )
    if plugin:
        for name, option in options.items():
            option["vars"] = [{"name": f"toolchain_{service}_{name}"}]
            if name in _SETTINGS_BY_ENVIRONMENT:
                option["env"] = [{"name": f"TOOLCHAIN_{prefix}_{name.upper()}"}]
    found: dict[str, object] = {"options": options, "notes": [note], "requirements": ["requests"]}
    if not plugin:
        group = f"delivery.toolchain.{service}"
        found["attributes"] = {
            "action_group": {
                "description": f"Use C(group/{group}) in C(module_defaults) to set the connection of"
                " all modules of this service.",
                "support": "full",
                "membership": [group],
            }
        }
    return str(yaml.safe_dump(found, sort_keys=False, width=1000))


class ModuleDocFragment:
    # The yamllint check of ansible-test requires literals in plain assignments; it skips annotated assignments.
    DOCUMENTATION: str = yaml.safe_dump({"requirements": ["requests"]})
    REPO: str = _fragment("repo")
    REPO_PLUGIN: str = _fragment("repo", plugin=True)
    TRACKER: str = _fragment("tracker")
    TRACKER_PLUGIN: str = _fragment("tracker", plugin=True)
    WIKI: str = _fragment("wiki")
    WIKI_PLUGIN: str = _fragment("wiki", plugin=True)
    CI: str = _fragment("ci")
    CI_PLUGIN: str = _fragment("ci", plugin=True)
    ANALYSIS: str = _fragment("analysis")
    ANALYSIS_PLUGIN: str = _fragment("analysis", plugin=True)
