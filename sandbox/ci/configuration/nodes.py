# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, also called agents or computers [ci-41]."""

from __future__ import annotations

import json
import time
from typing import Any

from lxml import etree
from starlette.responses import Response

from sandbox.ci.call import Action, Call, form_fields
from sandbox.ci.formats.exports import Exported, constants
from sandbox.ci.jobs import configuration
from sandbox.ci.plugins.versions import older
from sandbox.ci.server import pages
from sandbox.context import Context
from sandbox.service import ErrorResponse

NODES = "ci.node"
_PERMISSION = "hudson.model.Computer"
_ARCHITECTURE = "hudson.node_monitors.ArchitectureMonitor"
_BUILT_IN, _MASTER = "(built-in)", "(master)"
_CLASSES = ("hudson.slaves.DumbSlave", "hudson.slaves.DumbSlave$DescriptorImpl")
_ELEMENTS = (
    "name",
    "description",
    "remoteFS",
    "numExecutors",
    "mode",
    "retentionStrategy",
    "launcher",
    "label",
    "nodeProperties",
)
_EMPTY = """<slave><name/><description/><remoteFS/><numExecutors>1</numExecutors><mode>NORMAL</mode>
<retentionStrategy class="hudson.slaves.RetentionStrategy$Always"/>
<launcher class="hudson.slaves.JNLPLauncher"/><label/><nodeProperties/></slave>"""


_WORK_DIRECTORY = {"internalDir": "remoting", "failIfWorkDirIsMissing": "false"}


def put(context: Context, entry: dict[str, Any]) -> None:
    """Store a node of a seed: `{name, offline_by, reason, connected, busy_seconds, label, system,
    host, port}`. With a host, the server starts the agent with SSH.
    """
    root = configuration.parsed(_EMPTY)
    _set(root, "name", str(entry["name"]))
    _set(root, "label", str(entry.get("label") or ""))
    launcher = root.find("launcher")
    if launcher is not None and "host" in entry:
        launcher.set("class", "hudson.plugins.sshslaves.SSHLauncher")
        _set(launcher, "host", str(entry["host"]))
        _set(launcher, "port", str(entry.get("port", 22)))
    _save(context, str(entry["name"]), root, **{k: entry[k] for k in _STATE if k in entry})
    _change(context, str(entry["name"]), since=time.time())


#: State of a node that its configuration does not contain.
_STATE: dict[str, Any] = {
    "offline_by": None,
    "reason": "",
    "connected": True,
    "system": "Linux (amd64)",
    "busy_seconds": 0,
    "since": 0.0,
}


def action(call: Call) -> Action | None:
    """Return the action for a path below `/computer`, or `None` for a path that requests data."""
    if call.job is not None or call.rest[:1] != ["computer"]:
        return None
    if call.rest == ["computer", "doCreateItem"]:
        return Action(_create, "POST", f"{_PERMISSION}.Create", listed=False)
    if len(call.rest) < 3:
        return Action(_page, "GET", "", listed=False)
    actions = {
        "GET config.xml": Action(_read, "GET", f"{_PERMISSION}.ExtendedRead", listed=False),
        "POST config.xml": Action(_write, "POST", f"{_PERMISSION}.Configure", listed=False),
        "POST doDelete": Action(_delete, "POST", f"{_PERMISSION}.Delete", listed=False),
        "POST toggleOffline": Action(_toggle, "POST", "", listed=False),
        "POST changeOfflineCause": Action(
            _change_cause, "POST", f"{_PERMISSION}.Disconnect", listed=False
        ),
    }
    return actions.get(f"{call.request.method} {call.rest[2]}")


def exported(call: Call, name: str) -> Exported | None:
    """Return the object of a node, or `None` if it does not exist."""
    key = _key(call, name)
    row = call.site.context.store.get(NODES, key)
    return None if row is None and key != _BUILT_IN else _view(key, row or _built_in())


def all_of(context: Context) -> list[Exported]:
    """Return all nodes except the built-in node."""
    rows = context.store.items(NODES)
    return [_view(name, row) for name, row in rows if name != _BUILT_IN]


def built_in(context: Context) -> Exported:
    """Return the built-in node."""
    return _view(_BUILT_IN, context.store.get(NODES, _BUILT_IN) or _built_in())


def _built_in() -> dict[str, Any]:
    return {**_STATE, "xml": _EMPTY}


def _key(call: Call, name: str) -> str:
    """Return the key of a node. Server fact [ci-41]: the built-in node has two names."""
    earlier = older(call.site.context.settings("ci")["version"], "2.307")
    names = (_MASTER,) if earlier else (_BUILT_IN, _MASTER)
    return _BUILT_IN if name in names else name


def _view(name: str, row: dict[str, Any]) -> Exported:
    root = configuration.parsed(row["xml"])
    shown = "Built-In Node" if name == _BUILT_IN else name
    by_hand = row["offline_by"] is not None
    count = int(root.findtext("numExecutors") or 1)
    labels = [*(root.findtext("label") or "").split(), shown]
    idle = time.time() >= row["since"] + row["busy_seconds"]
    is_agent = name != _BUILT_IN
    fields = constants(
        assignedLabels=[{"name": label} for label in labels],
        description=root.findtext("description") or "",
        displayName=shown,
        executors=[Exported(None, constants(currentExecutable=None), ())] * count,
        oneOffExecutors=[],
        idle=idle,
        # unknown until the agent has connected; a monitor without a value is null
        monitorData={_ARCHITECTURE: row["system"] if row["connected"] else None},
        numExecutors=count,
        offline=by_hand or not row["connected"],
        offlineCauseReason=row["reason"] if by_hand else "",
        temporarilyOffline=by_hand,
    )
    kind = "hudson.slaves.SlaveComputer" if is_agent else "hudson.model.Hudson$MasterComputer"
    return Exported(kind, fields, tuple(fields))


def _found(call: Call) -> tuple[str, dict[str, Any]]:
    name = _key(call, call.rest[1])
    row = call.site.context.store.get(NODES, name)
    if row is None and name == _BUILT_IN:
        row = _built_in()
    if row is None:
        raise ErrorResponse(pages.not_found())
    return name, row


def _set(root: etree._Element, name: str, text: str) -> None:
    child = root.find(name)
    if child is None:
        child = etree.SubElement(root, name)
    child.text = text


def _save(
    context: Context, name: str, root: etree._Element, *, is_posted: bool = False, **state: Any
) -> None:
    before = context.store.get(NODES, name) or dict(_STATE)
    kept = etree.Element("slave")
    for element in _ELEMENTS:
        kept.extend(root.findall(element))
    _add_work_directory(kept, is_posted=is_posted)
    text = etree.tostring(kept, encoding="unicode")
    context.store.put(NODES, name, {**before, **state, "xml": text})


def _add_work_directory(root: etree._Element, *, is_posted: bool) -> None:
    """Add the default settings to the launcher. Server fact [ci-41]: in a configuration that was
    posted without them, the work directory is disabled.
    """
    launcher = root.find("launcher")
    if launcher is None or launcher.get("class") != "hudson.slaves.JNLPLauncher":
        return
    if launcher.find("workDirSettings") is None:
        settings = etree.SubElement(launcher, "workDirSettings")
        for name, text in {"disabled": str(is_posted).lower(), **_WORK_DIRECTORY}.items():
            etree.SubElement(settings, name).text = text


def _change(context: Context, name: str, **state: Any) -> None:
    row = context.store.get(NODES, name) or _built_in()
    context.store.put(NODES, name, {**row, **state})


def _page(call: Call) -> Response:
    """Return the page to which a form redirects."""
    if len(call.rest) == 2:
        _found(call)
    return pages.page("Nodes [Jenkins]", "<p></p>")


async def _create(call: Call) -> Response:
    """Handle POST doCreateItem. The status is 302, or 400 with an error page."""
    form = {name: values[-1] for name, values in (await form_fields(call.request)).items()}
    context, name = call.site.context, form.get("name", "")
    if form.get("type") not in _CLASSES:
        return pages.failed(f"No descriptor {form.get('type')}")
    if not name or context.store.get(NODES, name) is not None or name == _BUILT_IN:
        return pages.failed(f"Agent called \N{LEFT SINGLE QUOTATION MARK}{name} already exists")
    sent = json.loads(form.get("json") or "{}")
    root = configuration.parsed(_EMPTY)
    _set(root, "name", name)
    given = {
        "description": "nodeDescription",
        "remoteFS": "remoteFS",
        "numExecutors": "numExecutors",
        "mode": "mode",
        "label": "labelString",
    }
    for element, member in given.items():
        if sent.get(member) is not None:
            _set(root, element, str(sent[member]))
    # server fact [ci-41]: the agent of a new node is not connected
    _save(context, name, root, connected=False)
    return pages.redirect(call.absolute("."))


def _read(call: Call) -> Response:
    name, row = _found(call)
    if name == _BUILT_IN:
        return pages.failed("The built-in node has no configuration")
    root = configuration.parsed(row["xml"])
    etree.indent(root)
    text = etree.tostring(root, encoding="unicode")
    return Response(configuration.HEADER + text, 200, None, "application/xml")


async def _write(call: Call) -> Response:
    """Handle POST config.xml, which does not change the name. Server fact [ci-41]: on some releases
    it brings the node online.
    """
    name, _row = _found(call)
    try:
        root = configuration.parsed((await call.request.body()).decode())
    except configuration.Unreadable as error:
        return pages.oops(str(error))
    _set(root, "name", name)
    version = call.site.context.settings("ci")["version"]
    brings_online = not older(version, "2.492.1") and not older("2.528.3", version)
    state = {"offline_by": None, "reason": ""} if brings_online else {}
    _save(call.site.context, name, root, is_posted=True, **state)
    return Response(status_code=200)


def _delete(call: Call) -> Response:
    name, _row = _found(call)
    if name == _BUILT_IN:
        return pages.failed("The built-in node cannot be deleted")
    call.site.context.store.delete(NODES, name)
    return pages.redirect(f"{call.site.base}/computer/")


async def _toggle(call: Call) -> Response:
    """Handle POST toggleOffline, which switches between online and offline."""
    name, row = _found(call)
    online = row["offline_by"] is None
    call.require(f"{_PERMISSION}.{'Disconnect' if online else 'Connect'}")
    message = (await form_fields(call.request)).get("offlineMessage", [""])[-1]
    state = {"offline_by": call.login.user, "reason": message} if online else {"offline_by": None}
    _change(call.site.context, name, **state)
    return pages.redirect(call.absolute("."))


async def _change_cause(call: Call) -> Response:
    name, row = _found(call)
    message = (await form_fields(call.request)).get("offlineMessage", [""])[-1]
    if row["offline_by"] is not None:
        _change(call.site.context, name, offline_by=call.login.user, reason=message)
    return pages.redirect(call.absolute("."))
