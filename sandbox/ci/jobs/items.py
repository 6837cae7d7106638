# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, change, rename and delete jobs and folders [ci-21]."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree
from starlette.responses import Response

from sandbox.ci.builds import builds, queue
from sandbox.ci.call import Call, form_fields
from sandbox.ci.jobs import configuration, folder_parts, jobs
from sandbox.ci.plugins import plugin_manager
from sandbox.ci.server import access, pages
from sandbox.context import Context
from sandbox.service import ErrorResponse

_UNSAFE = "?*/\\%!@#$^&|<>[]:;"
_CHARSET = re.compile(r"(?i)charset=\"?([\w-]+)")


def _quoted(text: str) -> str:
    """Quote a name with the quotation marks of the server's messages."""
    return f"\N{LEFT SINGLE QUOTATION MARK}{text}\N{RIGHT SINGLE QUOTATION MARK}"


def _bad_name(name: str) -> str | None:
    """Return the server's error message for an invalid name, or `None` for a valid name."""
    if name == "":
        return "No name is specified"
    if name in (".", ".."):
        return f"A name cannot be {_quoted(name)}"
    for char in name:
        if ord(char) < 32 or 127 <= ord(char) < 160:
            return "No control code is allowed"
        if char in _UNSAFE:
            return f"{_quoted(char)} is an unsafe character"
    return "A name cannot end with a dot" if name.endswith(".") else None


def _save_number(context: Context) -> int:
    return context.store.next_id("ci.save")


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


async def create(call: Call) -> Response:
    """Handle POST {folder}/createItem?name=: 200 for XML, 302 for a copy or a folder."""
    folder = ""
    if call.job is not None:
        folder = call.job["full_name"]
        if call.job["kind"] != jobs.FOLDER:
            raise ErrorResponse(pages.not_found())
    fields = {name: values[-1] for name, values in (await form_fields(call.request)).items()}
    mode, kind = fields.get("mode"), call.request.headers.get("content-type", "")
    is_xml = kind.partition(";")[0].strip() in ("application/xml", "text/xml")
    if not kind and mode != "copy":
        return pages.failed("No Content-Type header set")
    # With an XML body, the name can only be in the query.
    given = call.request.query_params.get("name") if is_xml else fields.get("name")
    if given is None:
        return pages.failed("Query parameter 'name' is required")
    words = _bad_name(given)
    if words is not None:
        return pages.failed(words)
    # server fact [ci-21]: blanks are removed after the check
    name = _below(folder, given.strip())
    if jobs.find(call.site.context, name) is not None:
        return pages.failed(f"A job already exists with the name {_quoted(given.strip())}")
    if mode == "copy":
        return _copy(call, folder, fields.get("from", ""), name)
    if is_xml:
        return await _from_text(call, name)
    if mode is None:
        return pages.failed("No mode given")
    return _typed(call, mode, name)


def _made(call: Call, name: str) -> Response:
    return pages.redirect(f"{call.site.job_url(name)}configure")


def _copy(call: Call, folder: str, given: str, name: str) -> Response:
    """Copy a job. Server fact [ci-21]: the copy cannot be built until it is saved once."""
    context = call.site.context
    if not given:
        return pages.failed("Specify which job to copy")
    source = given.strip("/") if given.startswith("/") else _below(folder, given)
    job = jobs.find(context, source)
    source = source if job is None else job["full_name"]
    if job is None or not call.login.sees(source):
        return pages.failed(f"No such job: {given}")
    if not call.login.may(access.ITEM_CONFIG, source):
        raise ErrorResponse(pages.denied(call.login.user, access.ITEM_CONFIG))
    secret = configuration.holds_secrets(job)
    if secret and not call.login.may(access.ITEM_CONFIGURE, source):
        raise ErrorResponse(pages.failed(f"May not copy {source} as it contains secrets", 403))
    for key in jobs.subtree(context, source):
        copied = {**(jobs.get(context, key) or {}), "full_name": name + key[len(source) :]}
        held = not jobs.is_container(copied)
        context.store.put(jobs.JOBS, copied["full_name"], {**copied, "hold_off": held})
    return _made(call, name)


async def _from_text(call: Call, name: str) -> Response:
    try:
        root, found = await _described(call)
    except configuration.Unreadable as error:
        return pages.oops(str(error))
    jobs.put(call.site.context, name, found)
    folder_parts.take(call.site.context, name, found["kind"], root)
    return Response(status_code=200)


async def _described(call: Call) -> tuple[etree._Element, dict[str, Any]]:
    """Return the configuration in a request, and the job record that it describes."""
    context = call.site.context
    charset = _CHARSET.search(call.request.headers.get("content-type", ""))
    text = (await call.request.body()).decode(charset[1] if charset else "utf-8", "replace")
    plugins = plugin_manager.versions(context)
    root = configuration.parsed(text)
    return root, configuration.read(root, plugins, _save_number(context))


def _typed(call: Call, mode: str, name: str) -> Response:
    kinds = {cls: kind for kind, cls in jobs.CLASSES.items()}
    if mode not in kinds:
        return pages.failed(f"No item type {_quoted(mode)} is known")
    # server fact [ci-15]: unlike a configuration without `canRoam`, the form lets a job roam
    parts = {"canRoam": "<canRoam>true</canRoam>"} if kinds[mode] == jobs.FREESTYLE else {}
    jobs.put(call.site.context, name, {"kind": kinds[mode], "parts": parts})
    return _made(call, name)


def read_config(call: Call) -> Response:
    """Handle GET {job}/config.xml."""
    with_secrets = call.login.may(access.ITEM_CONFIGURE, call.found_job["full_name"])
    job = call.found_job
    root = configuration.root_of(job)
    folder_parts.add(call.site.context, job, root)
    text = configuration.document(root, with_secrets)
    call.site.context.store.put(jobs.JOBS, job["full_name"], {**job, "read": True})
    return Response(text, 200, None, "application/xml")


async def write_config(call: Call) -> Response:
    """Handle POST {job}/config.xml: 200, or 500 for another kind of job or invalid XML."""
    job, context = call.found_job, call.site.context
    try:
        root, found = await _described(call)
    except configuration.Unreadable as error:
        return pages.oops(str(error))
    if found["kind"] != job["kind"]:
        expected, sent = (jobs.CLASSES[kind] for kind in (job["kind"], found["kind"]))
        return pages.oops(f"Expecting class {expected} but got class {sent} instead")
    if found["disabled"] and not job["disabled"]:
        queue.forget(context, job["full_name"])
    found["hold_off"] = _holds_off(call, "config.xml")
    context.store.put(jobs.JOBS, job["full_name"], {**job, **found})
    folder_parts.take(context, job["full_name"], found["kind"], root)
    return Response(status_code=200)


def _holds_off(call: Call, request: str) -> bool:
    """Return whether a copied job still cannot be built after this request [ci-21]."""
    released_by = call.site.context.settings("ci")["copy_released_by"]
    return bool(call.found_job["hold_off"]) and released_by != request


def switch(disabled: bool) -> Any:
    """Return the handler of POST {job}/enable or {job}/disable.

    The response is a 302 to the job, even if nothing changed.
    """

    def handler(call: Call) -> Response:
        job, context = call.found_job, call.site.context
        if job["kind"] == jobs.FOLDER:
            raise ErrorResponse(pages.not_found())
        if job["disabled"] is not disabled:
            changes = {"disabled": disabled, "save": _save_number(context)}
            context.store.put(jobs.JOBS, job["full_name"], {**job, **changes})
            if disabled:
                queue.forget(context, job["full_name"])
        return pages.redirect(call.absolute("."))

    return handler


def delete(call: Call) -> Response:
    """Handle POST {job}/doDelete (302) and DELETE {job}/ (204): delete the job and its builds, or
    the folder and its jobs.
    """
    name = call.found_job["full_name"]
    remove(call.site.context, name)
    if call.request.method == "DELETE":
        return Response(status_code=204)
    parent = name.rpartition("/")[0]
    return pages.redirect(call.site.job_url(parent) if parent else f"{call.site.base}/")


def remove(context: Context, name: str) -> None:
    with context.store.transaction():
        for key in jobs.subtree(context, name):
            queue.forget(context, key)
            for build in builds.running(context, key):
                builds.abort(context, build, "Aborted: the job is deleted")
            for kind in (builds.BUILDS, builds.RUNNING):
                for build in context.store.keys(kind, f"{key}#"):
                    context.store.delete(kind, build)
            for kind in (jobs.JOBS, jobs.NUMBERS, builds.ENDS):
                context.store.delete(kind, key)
            folder_parts.forget(context, key)


async def rename(call: Call) -> Response:
    """Handle POST {job}/confirmRename?newName=, which redirects to the new URL of the job."""
    context, name = call.site.context, call.found_job["full_name"]
    given = (await form_fields(call.request)).get("newName", [""])[-1].strip()
    folder = name.rpartition("/")[0]
    new = _below(folder, given)
    words = _bad_name(given)
    other = None if new.casefold() == name.casefold() else jobs.find(context, new)
    if words is None and other is not None:
        words = f"The name {_quoted(given)} is already in use."
    if words is not None:
        return pages.failed(words)
    with context.store.transaction():
        for kind in (jobs.JOBS, jobs.NUMBERS, builds.ENDS, builds.BUILDS, builds.RUNNING):
            for key, doc in context.store.items(kind, name):
                rest = key[len(name) :]
                if rest[:1] in ("", "/", "#"):
                    context.store.delete(kind, key)
                    context.store.put(kind, new + rest, _renamed(doc, name, new))
    return pages.redirect(call.site.job_url(new))


def _renamed(doc: dict[str, Any], name: str, new: str) -> dict[str, Any]:
    changes: dict[str, Any] = {
        field: new + doc[field][len(name) :] for field in ("full_name", "job") if field in doc
    }
    return doc | changes


async def describe(call: Call) -> Response:
    """Handle POST {job}/submitDescription."""
    job, context = call.found_job, call.site.context
    text = (await form_fields(call.request)).get("description", [""])[-1]
    held = _holds_off(call, "submitDescription")
    described = {**job, "description": text or None, "hold_off": held}
    context.store.put(jobs.JOBS, job["full_name"], described)
    return pages.redirect(call.absolute("."))


def delete_build(call: Call) -> Response:
    """Handle POST {build}/doDelete (302 to the job).

    Server fact [ci-30]: a kept or running build is not deleted, and the status is 400 or 200.
    """
    context, build = call.site.context, call.found_build
    if build.get("keep"):
        return pages.failed(f"You cannot delete #{build['number']} because: it is kept forever")
    if not build["done"]:
        return pages.page("Retry delete", "<p>The build is running.</p>")
    context.store.delete(builds.BUILDS, call.build_key)
    return pages.redirect(call.site.job_url(build["job"]))


def toggle_keep(call: Call) -> Response:
    """Handle POST {build}/toggleLogKeep, which redirects back [ci-30]."""
    build = call.found_build
    changed = {**build, "keep": not build.get("keep")}
    call.site.context.store.put(builds.BUILDS, call.build_key, changed)
    return pages.redirect(call.absolute("."))
