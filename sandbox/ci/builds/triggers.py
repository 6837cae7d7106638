# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers for `build` and `buildWithParameters` with their status codes [ci-6]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from sandbox.ci.builds import parameters, queue
from sandbox.ci.formats.views import ViewContext
from sandbox.ci.jobs import jobs
from sandbox.ci.server import pages
from sandbox.multipart import Form

_DELAY = re.compile(r"(\d+)\s*(ms|s|secs?|seconds?|m|min|mins|minutes?)?\Z")


def build(site: ViewContext, job: dict[str, Any], sent: Form, user: str | None) -> Response:
    """Handle POST {job}/build [W4.4]."""
    refused = _not_buildable(site, job)
    if refused is not None:
        return refused
    form = sent.fields
    if not job["parameters"]:
        return _schedule(site, job, [], form, user)
    submitted = form.get("json", ())
    if not submitted:
        others = any(name not in ("delay", "token", "cause") for name in form)
        message = "This page expects a form submission" if others else "Nothing is submitted"
        return pages.failed(message)
    try:
        data = json.loads(submitted[0])
        values = parameters.from_json(job["parameters"], data, sent.files)
    except parameters.Unacceptable as error:
        return pages.oops(str(error))
    except (ValueError, AttributeError):
        return pages.failed("Failed to parse form data. Please report this problem as a bug")
    response = _schedule(site, job, values, form, user)
    return _altered(site, job, data, response)


def _altered(
    site: ViewContext, job: dict[str, Any], data: dict[str, Any], response: Response
) -> Response:
    """Apply the members `statusCode` and `redirectTo` of the form field `json` to the response
    [ci-6].
    """
    if "statusCode" not in data or response.status_code >= 400:
        return response
    location = str(data.get("redirectTo", "."))
    if location == ".":
        location = site.job_url(job["full_name"])
    return pages.redirect(location, int(data["statusCode"]))


def build_with_parameters(
    site: ViewContext, job: dict[str, Any], sent: Form, user: str | None
) -> Response:
    """Handle POST {job}/buildWithParameters [W4.4]."""
    refused = _not_buildable(site, job)
    if refused is not None:
        return refused
    if not job["parameters"]:
        # server fact [ci-6]: the status is 400 since release 2.524, and 500 before
        message = f"{job['full_name']} is not parameterized"
        status = int(site.context.settings("ci")["not_parameterized_status"])
        return pages.oops(message) if status == 500 else pages.refused(message, status)
    try:
        values = parameters.from_form(job["parameters"], sent.fields, sent.files)
    except parameters.Unacceptable as error:
        return pages.oops(str(error))
    return _schedule(site, job, values, sent.fields, user)


def _not_buildable(site: ViewContext, job: dict[str, Any]) -> Response | None:
    """Return the response for a job that cannot be built, or `None`.

    Server facts [ci-6]: the status is 409 for a disabled job and for a copied job that was never
    saved, and 302 if a plugin rejects the build.
    """
    if jobs.is_disabled(site.context, job) or job["hold_off"]:
        return pages.refused(f"{job['full_name']} is not buildable", 409)
    if job["refuse"]:
        return pages.redirect(site.job_url(job["full_name"]))
    return None


def _schedule(
    site: ViewContext,
    job: dict[str, Any],
    values: list[dict[str, Any]],
    form: Mapping[str, Sequence[str]],
    user: str | None,
) -> Response:
    try:
        quiet_ms = _delay_ms(form.get("delay", ()), job)
    except ValueError as error:
        return pages.oops(str(error))
    item, folded = queue.put(site.context, job, values, user, quiet_ms=quiet_ms, base=site.base)
    location = f"{site.base}/queue/item/{item['id']}/"
    # server fact [ci-6]: since release 2.308 the status is 303 for a merged build
    return pages.redirect(location, 303 if folded else 201)


def _delay_ms(given: Sequence[str], job: dict[str, Any]) -> int:
    """Convert a delay such as `5sec` to milliseconds.

    Server fact [ci-6]: a number without a unit is in milliseconds and rounded down to seconds.
    """
    if not given:
        return int(float(job["quiet_period"]) * 1000)
    found = _DELAY.match(given[0].strip())
    if found is None:
        raise ValueError(f"Invalid delay: {given[0]}")
    number, unit = int(found[1]), found[2]
    if unit in (None, "ms"):
        return number // 1000 * 1000
    return number * (60_000 if unit.startswith("m") else 1000)
