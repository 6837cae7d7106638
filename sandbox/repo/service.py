# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated artifact repository manager: routes, authentication and seeding."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, ClassVar

from sandbox import object_store
from sandbox.context import Service
from sandbox.repo import configuration, overview, repositories, system
from sandbox.repo.access import accounts, tokens
from sandbox.repo.access import permissions as access_permissions
from sandbox.repo.access import responses as access
from sandbox.repo.access import routes as access_routes
from sandbox.repo.builds import builds, discarding, promotion, publishing
from sandbox.repo.images import blobs, containers, image_promotion
from sandbox.repo.items import (
    aql,
    deploy,
    downloads,
    properties,
    relocation,
    search,
    storage,
    trash,
)
from sandbox.repo.items.tree import Tree
from sandbox.repo.lifecycle import bundles, promotions
from sandbox.repo.lifecycle import routes as lifecycle_routes
from sandbox.repo.responses import SERVICE, error
from sandbox.service import ErrorResponse, route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from sandbox.repo.items.tree import Node
    from sandbox.service import Handler

_OPEN = tuple(
    f"/{SERVICE}{path}" for path in (system.PING, access_routes.PING, access_routes.EXCHANGE)
)
_ACCESS = f"/{SERVICE}{access.PREFIX}/"
_REALM = {"WWW-Authenticate": 'Basic realm="Artifactory Realm"'}


class RepoService(Service):
    """Simulated artifact repository manager.

    Credentials: `users` is a dict of dicts with `password`, `admin` (default false) and
    `permissions` (default none, see the module `permissions`), by user name. `tokens` and
    `api_keys` are dicts of user names, by secret. `identities` is a dict of dicts with `provider`,
    `user`, and optionally `project_key` and `mapping`, by identity token.

    Seed:
    - `repositories`: list of dicts, see `repositories.find`
    - `files`: list of `repo`, `path`, `content`, `properties`, `created` (epoch milliseconds)
    - `trash`: deleted files, with the same keys as `files`
    - `builds`: list of `name`, `number`, `properties`, `started`, `modules`, `project`, `statuses`
    - `bundles`: list of `name`, `version`, `files` (paths with repository), `project`, `status`,
      `promotions` (list of `environment`, `created` in epoch milliseconds)
    - `images`: list of `repo`, `image`, `tag`, `content`, `created`, `properties`
    - `groups`: list of `name`, `description`, `external_id`, `auto_join`, `admin_privileges`,
      `realm`, `members`
    - `accounts`: list of users without a login, see `access.accounts`
    - `permissions`: list of `name` and `resources`, in the format of Access
    """

    name = SERVICE
    objects = (
        *("accounts", "builds", "bundles", "files", "groups", "images", "permissions"),
        *("repositories", "trash"),
    )
    logins = ("api_keys", "identities", "tokens", "users")
    defaults: ClassVar[dict[str, Any]] = {
        # vendor name in the API key header and in the key of the build repository (written flavour)
        "vendor": "Vendor",
        "head_checksums": False,
        "fail_fast_default": True,
        "link_flavour": "auto",
        "promote_errors": [],
        # fail a promotion with a 500 after this number of items, before the status is written
        "promote_breaks_after": None,
        "drop_explode": False,
        "build_statuses": True,
        # maximum number of rows in a query result (real flavour)
        "query_limit": None,
        # maximum number of characters of a query (real flavour)
        "query_characters": 6000,
        # respond with 404 instead of 403 if the user may not read a resource
        "hide_unauthorized": False,
        # respond to a download of a folder with an HTML index; otherwise with 404
        "folder_index": True,
        # redirect downloads of files of at least this size to an object store (real flavour)
        "redirect_bytes": None,
        # whether the lists of all configurations, and batches of repositories exist (real flavour)
        "repository_configurations": True,
        "repository_batch": True,
        # number of reads that still return the state before the last change of a repository
        "repository_lag": 0,
        # number of changes of repositories that fail with a conflict
        "descriptor_conflicts": 0,
        # whether an empty defaultDeploymentRepo removes the value
        "empties_deployment_repo": True,
        # the APIs that Access has; an empty list simulates a proxy that does not expose Access
        "access": ["ping", "tokens", "oidc", "groups", "users", "permissions"],
        # whether Access accepts passwords and API keys, not only access tokens
        "access_basic": False,
        # maximum number of rows in a list of Access
        "access_page": 1000,
        # whether a permission for `ANY LOCAL` also lists all local repositories
        "permissions_list_members": False,
        # whether the server has Release Lifecycle
        "lifecycle": True,
        # duration of the creation of bundles, of promotions and of distributions
        "lifecycle_seconds": 0,
        # names of the edge sites
        "sites": ["edge-1", "edge-2"],
        "token_default_seconds": 31_536_000,
        "token_threshold_seconds": 10_800,
        # lifetime of a token that an identity token was exchanged for
        "oidc_token_seconds": 3600,
    }

    def routes(self) -> list[Route]:
        return [
            *object_store.routes(),
            *access_routes.routes(),
            *access_routes.old_routes(self._only_real),
            *lifecycle_routes.routes(),
            *self._overview_routes(),
            *self._search_routes(),
            *self._build_routes(),
            *self._container_routes(),
            *self._item_routes(),
        ]

    def _overview_routes(self) -> list[Route]:
        real = self._only_real
        return [
            route("/api/repositories", overview.repository_list),
            route("/api/repositories/", real(overview.repository_list)),
            *self._configuration_routes(),
            route("/api/repositories/{key}", overview.repository),
            route("/api/storageinfo", overview.summary),
            route(system.PING, real(system.ping)),
            route("/api/system/version", real(system.version)),
            route("/api/trash/empty", trash.empty_all, "POST"),
            route("/api/trash/clean/{target:path}", trash.clean, "DELETE"),
            route("/api/storage/auto-trashcan", trash.listing),
            route("/api/storage/auto-trashcan/{target:path}", real(trash.item)),
        ]

    def _configuration_routes(self) -> list[Route]:
        real, repository = self._only_real, "/api/repositories/{key}"
        batch = "/api/v2/repositories/batch"
        attached = f"{access.PREFIX}/v1/projects/_/attach/repositories/{{repo}}"
        return [
            route("/api/repositories/configurations", real(configuration.configurations)),
            route(repository, real(configuration.create), "PUT"),
            route(repository, real(configuration.update), "POST"),
            route(repository, real(configuration.delete), "DELETE"),
            route(batch, real(configuration.batch_read)),
            route(batch, real(configuration.batch_write), "PUT", "POST"),
            route(f"{attached}/{{project}}", real(configuration.attach), "PUT"),
            route(attached, real(configuration.attach), "DELETE"),
        ]

    def _search_routes(self) -> list[Route]:
        real, written = self._only_real, self._only_written
        return [
            route("/api/search/aql", aql.search, "POST"),
            route("/api/search/pattern", real(search.pattern)),
            route("/search/pattern", written(search.pattern)),
            route("/api/search/artifact", real(search.artifact)),
            route("/api/search/prop", real(search.prop)),
            route("/api/search/checksum", real(search.checksum)),
            route("/api/search/buildArtifacts", real(search.build_artifacts), "POST"),
        ]

    def _build_routes(self) -> list[Route]:
        real = self._only_real
        return [
            route("/api/build", real(builds.names)),
            route("/api/build", real(publishing.upload), "PUT"),
            route("/api/build/append/{name}/{number}", real(publishing.append), "POST"),
            route("/api/build/delete", real(discarding.delete_by_body), "POST"),
            route("/api/build/promote/{name}/{number}", promotion.promote, "POST"),
            route("/api/build/retention/{name}", discarding.retention, "POST"),
            route("/api/build/{name}", builds.listing),
            route("/api/build/{name}", discarding.delete, "DELETE"),
            route("/api/build/{name}/{number}", builds.record),
        ]

    def _container_routes(self) -> list[Route]:
        found: list[Route] = []
        for segment, only in (("container", self._only_written), ("docker", self._only_real)):
            base = f"/api/{segment}/{{repo}}/v2"
            found += [
                route(f"{base}/_catalog", only(containers.catalog)),
                route(f"{base}/promote", only(image_promotion.promote), "POST"),
                route(f"{base}/{{image:path}}/tags/list", only(containers.tags)),
            ]
        real, base = self._only_real, "/api/docker/{repo}/v2"
        manifest = f"{base}/{{image:path}}/manifests/{{reference}}"
        uploads = f"{base}/{{image:path}}/blobs/uploads"
        return [
            *found,
            route("/v2/", real(blobs.ping)),
            route(f"{base}/", real(blobs.ping)),
            route(manifest, real(containers.manifest)),
            route(manifest, real(containers.put_manifest), "PUT"),
            route(f"{base}/{{image:path}}/referrers/{{digest}}", real(containers.referrers)),
            route(f"{uploads}/", real(blobs.start), "POST"),
            route(f"{uploads}/{{upload}}", real(blobs.progress)),
            route(f"{uploads}/{{upload}}", real(blobs.patch), "PATCH"),
            route(f"{uploads}/{{upload}}", real(blobs.finish), "PUT"),
            route(f"{uploads}/{{upload}}", real(blobs.cancel), "DELETE"),
            route(f"{base}/{{image:path}}/blobs/{{digest}}", real(blobs.get)),
        ]

    def _item_routes(self) -> list[Route]:
        real, written = self._only_real, self._only_written
        stored = "/api/storage/{repo}/{path:path}"
        return [
            route("/storage/{repo}/{path:path}", written(properties.put), "PUT"),
            route(stored, real(properties.put), "PUT"),
            route(stored, real(properties.delete), "DELETE"),
            route(stored, storage.get_item),
            route("/api/storage/{repo}", _at_root(storage.get_item)),
            route("/api/storage/{repo}", real(_at_root(properties.put)), "PUT"),
            route("/api/metadata/{repo}/{path:path}", real(properties.patch), "PATCH"),
            route("/api/copy/{repo}/{path:path}", real(relocation.handler(copy=True)), "POST"),
            route("/api/move/{repo}/{path:path}", real(relocation.handler(copy=False)), "POST"),
            # this catch-all for unknown /api paths must come before the routes of item paths
            route("/api/{rest:path}", self.not_found, "GET", "PUT", "POST", "DELETE", "PATCH"),
            route("/{repo}/{path:path}", deploy.put, "PUT"),
            route("/{repo}/{path:path}", downloads.get),
            route("/{repo}/{path:path}", deploy.delete, "DELETE"),
            route("/{repo}", _at_root(downloads.get)),
            route("/{repo}", _at_root(deploy.delete), "DELETE"),
        ]

    def _only_real(self, handler: Handler) -> Handler:
        return self._only(handler, real=True)

    def _only_written(self, handler: Handler) -> Handler:
        return self._only(handler, real=False)

    def _only(self, handler: Handler, *, real: bool) -> Handler:
        """Return a handler that responds with 404 in the other flavour.

        :param real: whether the handler belongs to the real flavour
        """

        def guarded(request: Request) -> Response | Awaitable[Response]:
            return handler(request) if self.real is real else self.not_found(request)

        guarded.__doc__ = handler.__doc__
        return guarded

    async def authenticate(self, request: Request) -> Response | None:
        """Authenticate with a password, token or API key [W5]. A ping requires no login [repo-5].

        Return the response to a rejected login [repo-3], or None.
        """
        if object_store.asked(request, SERVICE) or request.scope["path"] in _OPEN:
            return None
        try:
            request.scope["sandbox.user"] = self._user(request)
        except ErrorResponse as answer:
            return answer.response
        return None

    def _user(self, request: Request) -> str:
        credentials = self.context.credentials(self.name)
        key = request.headers.get(f"x-{'JFrog' if self.real else self.settings['vendor']}-art-api")
        if key is not None:
            self._require_token(request, "api key")
            user: str | None = credentials.get("api_keys", {}).get(key)
            if user is None:
                raise error(403, "Bad API key")
            return user
        scheme, _space, value = request.headers.get("authorization", "").partition(" ")
        self._require_token(request, scheme)
        user = None
        if scheme.lower() == "bearer":
            user = credentials.get("tokens", {}).get(value.strip())
            user = user or tokens.user_of(self.context, value.strip())
        elif scheme.lower() == "basic":
            user = self._basic(credentials, value)
        if user is None:
            message = "Bad credentials" if scheme else "Authentication is required"
            raise error(401, message, _REALM)
        return user

    def _require_token(self, request: Request, scheme: str) -> None:
        """Raise a 401 if Access requires an access token, and the login is none [repo-31]."""
        needed = request.scope["path"].startswith(_ACCESS) and not self.settings["access_basic"]
        if needed and scheme.lower() != "bearer":
            raise access.refusal(401, "UNAUTHORIZED", "Requires admin authentication")

    def _basic(self, credentials: dict[str, Any], value: str) -> str | None:
        try:
            name, _colon, password = base64.b64decode(value).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        found = accounts.find(self.context, name)
        secrets = {**credentials.get("tokens", {}), **credentials.get("api_keys", {})}
        if found is not None and (
            password == found.get("password") or secrets.get(password) == name
        ):
            return name
        return None

    def is_write(self, method: str, path: str, form: Mapping[str, str]) -> bool:
        """Return whether a request is a write; searches and dry runs of copies only read."""
        dry = path.startswith(("/api/copy/", "/api/move/")) and form.get("dry") not in (None, "0")
        reads = dry or path.startswith(("/api/search/", access_routes.EXCHANGE))
        return super().is_write(method, path, form) and not reads

    def headers(self) -> dict[str, str]:
        """Return the headers of all responses: real servers identify themselves [repo-5]."""
        return system.HEADERS if self.real else {}

    def inside(self, path: str) -> str | None:
        """Map `/v2/{repo}/{image}/...` at the root of the host to the container registry API.

        Container clients expect the API there. A proxy in front of a real server maps the paths in
        the same way.
        """
        prefix, _v2, rest = path.partition("/v2/")
        if prefix or not _v2:
            return None
        repo, slash, image = rest.partition("/")
        return f"/{SERVICE}/api/docker/{repo}/v2/{image}" if slash else f"/{SERVICE}/v2/"

    def not_found(self, request: Request) -> Response:
        return error(404, "Not Found").response

    def method_not_allowed(self, request: Request, allowed: str) -> Response:
        return error(405, "Method Not Allowed", {"Allow": allowed}).response

    def seed(self, data: dict[str, Any]) -> None:
        for doc in data.get("repositories", []):
            self.context.store.put(repositories.KIND, doc["key"], {"packageType": "generic", **doc})
            if doc["type"] == "LOCAL":
                Tree(self.context).make_folder(doc["key"], "", "admin")
        for item in data.get("files", []):
            self._seed_file(item)
        for item in data.get("trash", []):
            node = self._seed_file(item)
            trash.keep(self.context, Tree(self.context).remove(node["repo"], node["path"]), "admin")
        for group in data.get("groups", []):
            accounts.put_group(self.context, group)
        for user in data.get("accounts", []):
            self.context.store.put(accounts.USERS, user["name"], user)
        for permission in data.get("permissions", []):
            access_permissions.put(self.context, permission["name"], permission["resources"])
        self._seed_builds(data)
        for image in data.get("images", []):
            repo, name, content = image["repo"], image["image"], image["content"].encode()
            created = image.get("created")
            properties = image.get("properties", {})
            containers.push(
                *(self.context, repo, name, image["tag"], content),
                created=created,
                properties=properties,
            )

    def _seed_builds(self, data: dict[str, Any]) -> None:
        for build in data.get("builds", []):
            builds.publish(
                self.context,
                build["name"],
                str(build["number"]),
                build.get("properties", {}),
                started=build.get("started"),
                modules=build.get("modules"),
                project=build.get("project", ""),
                statuses=build.get("statuses"),
            )
        for bundle in data.get("bundles", []):
            bundles.store(self.context, bundle)
            promotions.store(self.context, bundle)

    def _seed_file(self, item: dict[str, Any]) -> Node:
        blob = self.context.store.blobs.put(item["content"].encode())
        return Tree(self.context).put_file(
            item["repo"],
            item["path"],
            blob,
            "admin",
            item.get("properties"),
            created=item.get("created"),
        )


def _at_root(handler: Callable[[Request], Response]) -> Handler:
    """Adapt a handler of `{repo}/{path}` to the route `{repo}`, with an empty path."""

    def at_root(request: Request) -> Response:
        request.path_params["path"] = ""
        return handler(request)

    return at_root
