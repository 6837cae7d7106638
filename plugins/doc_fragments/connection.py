# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options, a section per service: `repo` for modules, `repo_plugin` for lookups, and so on."""

from __future__ import annotations

import yaml

_SETTINGS = """
options:
  url:
    description:
      - Base URL of the service, including its context path. A trailing slash has no effect, and the path of the
        interface at its end, such as C(/rest/api/2), is dropped.
      - User info in the URL (V(https://user:token@host)) is used as the login and never shown.
      - Required. Set it in the task, the group defaults, the variable C(toolchain_{service}_url) or the environment
        variable E(TOOLCHAIN_{prefix}_URL). Credentials that are set in the same place are not sent to a URL of another origin.
    type: str
  validate_certs:
    description: Whether to verify the certificate of the server. Also C(toolchain_{service}_validate_certs), E(TOOLCHAIN_{prefix}_VALIDATE_CERTS).
    type: bool
    default: true
  ca_path:
    description: File or folder with trusted CA certificates. Also C(toolchain_{service}_ca_path), E(TOOLCHAIN_{prefix}_CA_PATH).
    type: path
  client_cert:
    description:
      - PEM file with the client certificate. It must also contain the key, unless O(client_key) is set.
      - Also C(toolchain_{service}_client_cert), E(TOOLCHAIN_{prefix}_CLIENT_CERT).
    type: path
  client_key:
    description: PEM file with the key of the client certificate. Also C(toolchain_{service}_client_key), E(TOOLCHAIN_{prefix}_CLIENT_KEY).
    type: path
  timeout:
    description:
      - Timeout of a request in seconds, for connecting and for the response.
      - Also C(toolchain_{service}_timeout), E(TOOLCHAIN_{prefix}_TIMEOUT).
    type: float
    default: 30
  retries:
    description:
      - Number of retries of a read request after a connection error, a timeout or the statuses 429, 502, 503 and 504.
      - A request that changes the server is retried only if the server certainly did not process it.
      - Also C(toolchain_{service}_retries), E(TOOLCHAIN_{prefix}_RETRIES).
    type: int
    default: 3
  retry_max_wait:
    description:
      - Maximum wait between two attempts in seconds. If the server asks for a longer wait, the request is not retried.
      - Also C(toolchain_{service}_retry_max_wait), E(TOOLCHAIN_{prefix}_RETRY_MAX_WAIT).
    type: float
    default: 60
"""

_LOGIN = """
options:
  username:
    description: User for HTTP basic authentication, sent with the first request. Requires O(password). {credential}
    type: str
    aliases: [user]
  password:
    description: {password} {credential}
    type: str
  credentials_file:
    description: File in netrc format with user and password of the host. It is read only if no other credential is set. {credential}
    type: path
"""

_TOKEN = """
options:
  token:
    description: Bearer token. {credential}
    type: str
"""

_OAUTH = """
options:
  oauth_consumer_key:
    description: Consumer key of OAuth 1.0a. Requires the Python libraries C(requests-oauthlib) and C(oauthlib[signedtoken]). {credential}
    type: str
  oauth_private_key:
    description: Private key of the consumer, as PEM content or the path of a PEM file. {credential}
    type: str
  oauth_access_token:
    description: Access token granted to the consumer. {credential}
    type: str
  oauth_access_token_secret:
    description: Secret of the access token. The RSA signature methods need no secret. {credential}
    type: str
  oauth_signature_method:
    description: Signature method of OAuth requests. The default is V(RSA-SHA1). {credential}
    type: str
    choices: [RSA-SHA1, RSA-SHA256, RSA-SHA512]
"""

_REPO = """
options:
  api_key:
    description:
      - API key. It is sent in the header of the dialect, or in the headers of both dialects until the dialect is known.
      - Artifactory is retiring API keys. From 7.98 on, no key can be created, and existing keys work only if the server allows them. Use
        O(token) instead, with an identity token, a reference token or an access token.
      - "{credential}"
    type: str
  dialect:
    description:
      - Dialect of the REST interface of the server.
      - V(generic) is the documented interface, V(jfrog) is that of JFrog Artifactory.
      - V(auto) detects the dialect from responses of the server, or queries the version if the responses do not show it.
      - Also C(toolchain_repo_dialect), E(TOOLCHAIN_REPO_DIALECT).
    type: str
    choices: [auto, generic, jfrog]
    default: auto
  vendor:
    description:
      - Vendor name in the C(generic) dialect, as in the header C(X-Vendor-Art-Api).
      - Also C(toolchain_repo_vendor), E(TOOLCHAIN_REPO_VENDOR).
    type: str
    default: Vendor
  platform_url:
    description:
      - Base URL of the platform, for the interfaces next to the repository manager, such as C(/access) and C(/lifecycle).
      - The default is O(url) without its last segment C(artifactory). Both use the same login.
      - Also C(toolchain_repo_platform_url), E(TOOLCHAIN_REPO_PLATFORM_URL).
    type: str
"""

_OIDC = """
options:
  oidc_provider:
    description: Name of the OpenID Connect provider on the platform. Requires O(oidc_token) or O(oidc_token_file). {credential}
    type: str
  oidc_token:
    description:
      - Identity token of the CI server or cluster. It is exchanged for an access token, once for the run and again before that expires.
      - "{credential}"
    type: str
  oidc_token_file:
    description: File with the identity token. It is read again for each exchange, because issuers rotate the token. {credential}
    type: path
  oidc_project_key:
    description: Key of the project to which the identity mapping belongs. {credential}
    type: str
  oidc_identity_mapping_name:
    description: Name of the identity mapping to use. By default the platform selects one by the claims of the token. {credential}
    type: str
"""

_OAUTH2 = """
options:
  oauth2_client_id:
    description:
      - Client id of an OAuth 2.0 credential of an Atlassian Cloud service account. Requires O(oauth2_client_secret) and the gateway, see
        O(cloud_id).
      - "{credential}"
    type: str
  oauth2_client_secret:
    description:
      - Client secret. It is exchanged for an access token, once for the run and again before that expires.
      - "{credential}"
    type: str
"""

_TRACKER = """
options:
  dialect:
    description:
      - Type of the server. V(auto) queries the server, or detects the type from its responses.
      - Also C(toolchain_tracker_dialect), E(TOOLCHAIN_TRACKER_DIALECT).
    type: str
    choices: [auto, server, cloud]
    default: auto
  accept_language:
    description:
      - Language of names in responses, such as V(en). It overrides the language of the account.
      - Also C(toolchain_tracker_accept_language), E(TOOLCHAIN_TRACKER_ACCEPT_LANGUAGE).
    type: str
"""

_CLOUD = """
options:
  cloud_id:
    description:
      - Id of an Atlassian Cloud site. Requests then go to the gateway, which scoped tokens and service accounts need.
      - V(auto) reads the id from C(/_edge/tenant_info) of the site, whose address is O(url).
      - Also C(toolchain_{service}_cloud_id), E(TOOLCHAIN_{prefix}_CLOUD_ID).
    type: str
  cloud_gateway:
    description: Base URL of the gateway. Also C(toolchain_{service}_cloud_gateway), E(TOOLCHAIN_{prefix}_CLOUD_GATEWAY).
    type: str
    default: https://api.atlassian.com
  oauth2_url:
    description:
      - Base URL of the token service for O(oauth2_client_id).
      - Also C(toolchain_{service}_oauth2_url), E(TOOLCHAIN_{prefix}_OAUTH2_URL).
    type: str
    default: https://auth.atlassian.com
"""

_WIKI = """
options:
  dialect:
    description:
      - Interface of the server. V(server) is for a server that you host, V(cloud_v1) and V(cloud_v2) are for Atlassian Cloud.
      - V(auto) detects the cloud from the host in O(url) or from O(cloud_id), and asks once whether it has version 2.
      - Also C(toolchain_wiki_dialect), E(TOOLCHAIN_WIKI_DIALECT).
    type: str
    choices: [auto, server, cloud_v1, cloud_v2]
    default: auto
"""

_ANALYSIS = """
options:
  username:
    description: User of the server. The default is the user of the only matching line of the token file. {credential}
    type: str
    aliases: [user]
  ltoken:
    description: Login token of the user. {credential}
    type: str
  ltoken_file:
    description:
      - File with C(host;port;user;token) lines, as written by C(kwauth).
      - If neither this option nor O(ltoken) is set, the default is the file in E(KLOCWORK_LTOKEN), else C(~/.klocwork/ltoken). {credential}
    type: path
  token_json:
    description:
      - Output of C(kwauth --print-auth-info), a JSON object with user and token, as from the lookup P(ansible.builtin.pipe#lookup).
      - Releases from 2024.3 on do not write a token file. An application token cannot log in to the Web API. {credential}
    type: str
"""

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
    credential = (
        f"Also a variable (C(toolchain_{service}_) and the name) or an environment variable (C(TOOLCHAIN_{prefix}_) and the name in capitals)."
        " All credentials come from the first of task, variables and environment that sets any."
    )
    password = "Password or API token of the user." if service == "ci" else "Password of the user."
    for part in _PARTS[service]:
        text = (
            part.replace("{prefix}", prefix)
            .replace("{service}", service)
            .replace("{credential}", credential)
            .replace("{password}", password)
        )
        options.update(yaml.safe_load(text)["options"])
    if plugin:
        for name, option in options.items():
            option["vars"] = [{"name": f"toolchain_{service}_{name}"}]
            if name in _SETTINGS_BY_ENVIRONMENT:
                option["env"] = [{"name": f"TOOLCHAIN_{prefix}_{name.upper()}"}]
    return str(
        yaml.safe_dump(
            {"options": options, "requirements": ["requests"]}, sort_keys=False, width=1000
        )
    )


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
