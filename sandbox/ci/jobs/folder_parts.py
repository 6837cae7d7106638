# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials and views in the configuration of a folder.

Server fact [ci-21]: the configuration contains them, and one without them deletes them.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from lxml import etree

from sandbox.ci.configuration import credentials, list_views
from sandbox.ci.jobs import ciphers, configuration, jobs
from sandbox.context import Context

_PROPERTY = configuration.FOLDER_CREDENTIALS
_DOMAIN = "com.cloudbees.plugins.credentials.domains.Domain"
_LIST = "java.util.concurrent.CopyOnWriteArrayList"
_HOLDER = "com.cloudbees.hudson.plugins.folder.views.DefaultFolderViewHolder"
_OWNER = {"class": jobs.CLASSES[jobs.FOLDER], "reference": "../../../.."}


def add(context: Context, job: dict[str, Any], root: etree._Element) -> None:
    """Add the credentials and views of a folder to its configuration."""
    if not jobs.is_container(job):
        return
    _add_credentials(context, str(job["full_name"]), root)
    rows = context.store.items(list_views.VIEWS, f"{job['full_name']}|")
    if job["kind"] == jobs.FOLDER and (job["parts"] is not None or rows):
        _add_views(context, str(job["full_name"]), root)
    etree.indent(root)


def _add_credentials(context: Context, folder: str, root: etree._Element) -> None:
    domains: dict[str, list[etree._Element]] = {}
    for key, row in context.store.items(credentials.CREDENTIALS, f"{folder}|"):
        element = configuration.parsed(row["xml"])
        for secret in element.iter(*credentials.SECRETS):
            if secret.text and not len(secret):
                # the same vector until the credential is saved again
                secret.text = ciphers.encrypt(secret.text, bytes.fromhex(row["fingerprint"])[:16])
        domains.setdefault(key.split("|")[1], []).append(element)
    if not domains:
        return
    properties = root.find("properties")
    if properties is None:
        properties = etree.SubElement(root, "properties")
    holder = etree.SubElement(properties, _PROPERTY, plugin=configuration.PLUGINS[jobs.FOLDER])
    entries = etree.SubElement(
        holder, "domainCredentialsMap", {"class": "hudson.util.CopyOnWriteMap$Hash"}
    )
    for name, found in domains.items():
        entry = etree.SubElement(entries, "entry")
        domain = etree.SubElement(entry, _DOMAIN)
        if name != credentials.GLOBAL:
            etree.SubElement(domain, "name").text = name
        etree.SubElement(domain, "specifications")
        etree.SubElement(entry, _LIST).extend(found)


def _add_views(context: Context, folder: str, root: etree._Element) -> None:
    holder = root.find("folderViews")
    if holder is None:
        holder = etree.SubElement(root, "folderViews", {"class": _HOLDER})
        etree.SubElement(holder, "tabBar", {"class": "hudson.views.DefaultViewsTabBar"})
    for views in holder.findall("views"):
        holder.remove(views)
    views = etree.Element("views")
    holder.insert(0, views)
    for element in list_views.stored(context, folder):
        element.insert(0, etree.Element("owner", _OWNER))
        views.append(element)


def take(context: Context, folder: str, kind: str, root: etree._Element) -> None:
    """Store the credentials and views of a configuration instead of those of the folder."""
    if kind not in jobs.CONTAINERS:
        return
    _take_credentials(context, folder, root)
    if kind == jobs.FOLDER:
        list_views.replace(context, folder, root.findall("folderViews/views/*"))


def _take_credentials(context: Context, folder: str, root: etree._Element) -> None:
    kept = set()
    for entry in root.iterfind(f"properties/{_PROPERTY}/domainCredentialsMap/entry"):
        domain = entry.findtext(f"{_DOMAIN}/name") or credentials.GLOBAL
        for element in entry.iterfind(f"{_LIST}/*"):
            found = _decrypted(element)
            key = f"{folder}|{domain}|{found.findtext('id') or ''}"
            row = context.store.get(credentials.CREDENTIALS, key)
            if row is None or _text(configuration.parsed(row["xml"])) != _text(found):
                text = etree.tostring(found, encoding="unicode")
                credentials.put(context, {"folder": folder, "domain": domain, "config": text})
            kept.add(key)
    for key in context.store.keys(credentials.CREDENTIALS, f"{folder}|"):
        if key not in kept:
            context.store.delete(credentials.CREDENTIALS, key)


def _decrypted(element: etree._Element) -> etree._Element:
    found = deepcopy(element)
    for each in found.iter():
        plain = ciphers.decrypt(each.text or "")
        if plain is not None:
            each.text = plain
    return found


def _text(element: etree._Element) -> str:
    etree.indent(element)
    element.tail = None
    return str(etree.tostring(element, encoding="unicode")).strip()


def forget(context: Context, folder: str) -> None:
    """Remove the credentials and views of a deleted folder."""
    for kind in (credentials.CREDENTIALS, credentials.DOMAINS, list_views.VIEWS):
        for key in context.store.keys(kind, f"{folder}|"):
            context.store.delete(kind, key)
