# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options, one section per service: C(repo) for modules, C(repo_plugin) for lookups, and so on."""

from __future__ import annotations

import yaml

_SETTINGS = """
options:
  url:
    description:
      - Base address of the service, with its context path if it has one; a trailing slash does not matter.
      - User info in it (V(https://user:token@host)) is moved to the login and never shown.
      - Needed, from the task, the group defaults, the variable C(toolchain_{service}_url) or the environment variable E(TOOLCHAIN_{prefix}_URL).
    type: str
  validate_certs:
    description: Whether the certificate of the server is checked. Also C(toolchain_{service}_validate_certs), E(TOOLCHAIN_{prefix}_VALIDATE_CERTS).
    type: bool
    default: true
  ca_path:
    description: File or folder with the certificates of trusted authorities. Also C(toolchain_{service}_ca_path), E(TOOLCHAIN_{prefix}_CA_PATH).
    type: path
  client_cert:
    description:
      - PEM file with the client certificate (and its key, unless O(client_key) is given).
      - Also C(toolchain_{service}_client_cert), E(TOOLCHAIN_{prefix}_CLIENT_CERT).
    type: path
  client_key:
    description: PEM file with the key of the client certificate. Also C(toolchain_{service}_client_key), E(TOOLCHAIN_{prefix}_CLIENT_KEY).
    type: path
  timeout:
    description: Seconds that one request may take to connect, and to answer. Also C(toolchain_{service}_timeout), E(TOOLCHAIN_{prefix}_TIMEOUT).
    type: float
    default: 30
  retries:
    description:
      - How often a request that changes nothing is sent again after a connection error, a timeout or the statuses 429, 502, 503 and 504.
      - A request that changes the server is sent again only where the server surely did not act on it.
      - Also C(toolchain_{service}_retries), E(TOOLCHAIN_{prefix}_RETRIES).
    type: int
    default: 3
  retry_max_wait:
    description:
      - The longest single wait between two tries, in seconds. A server that asks for more is not waited for.
      - Also C(toolchain_{service}_retry_max_wait), E(TOOLCHAIN_{prefix}_RETRY_MAX_WAIT).
    type: float
    default: 60
"""

_LOGIN = """
options:
  username:
    description: User of HTTP basic authentication, sent with the first request. Goes with O(password). {credential}
    type: str
    aliases: [user]
  password:
    description: {password} {credential}
    type: str
  credentials_file:
    description: A file in netrc format that holds user and password for the host; read only when no other credential is named. {credential}
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
    description: Consumer key of OAuth 1.0a; needs the Python libraries C(requests-oauthlib) and C(oauthlib[signedtoken]). {credential}
    type: str
  oauth_private_key:
    description: Private key of the consumer, as PEM text or the path of a PEM file. {credential}
    type: str
  oauth_access_token:
    description: Access token that was granted to the consumer. {credential}
    type: str
  oauth_access_token_secret:
    description: Secret of the access token; the signature methods with RSA need none. {credential}
    type: str
  oauth_signature_method:
    description: How OAuth requests are signed; V(RSA-SHA1) where it is not given. {credential}
    type: str
    choices: [RSA-SHA1, RSA-SHA256, RSA-SHA512]
"""

_REPO = """
options:
  api_key:
    description: API key, sent in the header of the dialect (or of both, while that is not known). {credential}
    type: str
  dialect:
    description:
      - The spelling of the interface that the server speaks.
      - V(generic) is the written interface, V(jfrog) what JFrog Artifactory speaks; V(auto) learns it from the server's answers,
        and asks for its version where they do not tell. Also C(toolchain_repo_dialect), E(TOOLCHAIN_REPO_DIALECT).
    type: str
    choices: [auto, generic, jfrog]
    default: auto
  vendor:
    description:
      - The vendor's name in the C(generic) dialect, as in the header C(X-Vendor-Art-Api).
      - Also C(toolchain_repo_vendor), E(TOOLCHAIN_REPO_VENDOR).
    type: str
    default: Vendor
"""

_TRACKER = """
options:
  dialect:
    description:
      - What kind of server it is; V(auto) asks the server, or learns it from its answers. Also C(toolchain_tracker_dialect), E(TOOLCHAIN_TRACKER_DIALECT).
    type: str
    choices: [auto, server, cloud]
    default: auto
  accept_language:
    description:
      - Language of names in answers (as V(en)), whatever the account's own is.
      - Also C(toolchain_tracker_accept_language), E(TOOLCHAIN_TRACKER_ACCEPT_LANGUAGE).
    type: str
"""

_ANALYSIS = """
options:
  username:
    description: User of the server; where it is not given, the user of the only matching line of the token file. {credential}
    type: str
    aliases: [user]
  ltoken:
    description: Login token of the user. {credential}
    type: str
  ltoken_file:
    description:
      - File with C(host;port;user;token) lines, as C(kwauth) writes it.
      - Where neither this nor O(ltoken) is given, the file that E(KLOCWORK_LTOKEN) names, else C(~/.klocwork/ltoken). {credential}
    type: path
"""

_PARTS = {
    "repo": (_SETTINGS, _LOGIN, _TOKEN, _REPO),
    "tracker": (_SETTINGS, _LOGIN, _TOKEN, _OAUTH, _TRACKER),
    "wiki": (_SETTINGS, _LOGIN, _TOKEN, _OAUTH),
    "ci": (_SETTINGS, _LOGIN),
    "analysis": (_SETTINGS, _ANALYSIS),
}


#: Ansible itself reads these of a lookup from the environment. Credentials count as a whole, which it cannot know: they are read
#: with the connection.
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
    "accept_language",
)


def _fragment(service: str, *, plugin: bool = False) -> str:
    """The options of one service; for plugins with the variables, and the environment that Ansible itself reads."""
    options: dict[str, dict[str, object]] = {}
    prefix = service.upper()
    credential = (
        f"Also by variable (C(toolchain_{service}_) and the name), else by environment (C(TOOLCHAIN_{prefix}_) and the name in capitals);"
        " the first place that names a credential counts, and the others are not asked."
    )
    password = "Its password, or an API token." if service == "ci" else "Its password."
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
    # ansible-test's yamllint wants literals in plain assignments; annotated ones it passes over.
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
