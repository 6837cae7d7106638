// SPDX-License-Identifier: GPL-3.0-or-later
// Names and values are data: they become texts of nodes, never markup.
"use strict";
(() => {
  const { report, history, links, files, compared, commands, ruled, resolved_count: allResolved } = JSON.parse(document.getElementById("data").textContent);
  const titles = { failed: "Failed", missing: "Missing", different: "Different", extra: "Not in Git",
    unmanaged: "Not managed", unknown: "Not compared", ignored: "Ignored" };
  const groups = Object.keys(titles);
  const mostLines = 4000;
  const mostPrinted = 300;
  const mostUnfolded = 30;
  const mostText = 200;
  const mostInline = 40;
  const mostFields = 3;
  const mostEntries = 3;
  const mostDrawn = 100;
  const mostAtOnce = 60;
  const fewRows = 10;
  const natural = new Intl.Collator("en", { numeric: true });
  const signs = { failed: "!", missing: "+", different: "~", extra: "-", unmanaged: "?", unknown: "?", ignored: "." };
  const severalHosts = report.hosts.length > 1;
  // the two sides of a finding, as titles of columns, of lines, and in the line of an object
  const [beforeTitle, afterTitle] = report.check ? ["On the server", "In Git"] : ["Before", "After"];
  const [beforeLines, afterLines] = report.check ? ["- on the server", "+ in Git"] : ["- before", "+ after"];
  const [beforeName, afterName] = report.check ? ["Server", "Git"] : ["Before", "After"];

  const node = (tag, name, ...inside) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...inside);
    return made;
  };
  const number = (value) => value.toLocaleString("en");
  const many = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
  const group = (one) => one.status !== "drift" ? one.status
    : { create: "missing", delete: "extra" }[one.action] || "different";

  // ---- when it was
  const minute = (time) => `${time.replace("T", " ").slice(0, 16)} UTC`;
  const showAge = () => {
    const seconds = (Date.now() - Date.parse(report.finished)) / 1000;
    const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
    const [unit, size] = units.find(([, size]) => seconds >= size) || ["minute", 60];
    const count = Math.floor(seconds / size);
    const ago = count < 1 ? "just now" : `${many(count, unit)} ago`;
    const time = node("time", "", node("span", "screen", ago), node("span", "paper", minute(report.finished)));
    time.dateTime = report.finished;
    time.title = report.finished;
    document.getElementById("age").replaceChildren(report.check ? "Checked " : "Finished ", time);
  };

  // ---- the history
  const svg = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const bar = (kind, run, at, width, low, high) => {
    const made = svg("rect", { class: `bar-${kind}`, x: at, width, y: 100 - high, height: high - low });
    const title = svg("title", {});
    title.textContent = `${run.finished}: ${number(run.counts.drift)} differ, ${number(run.counts.failed)} failed`;
    made.append(title);
    return made;
  };
  const showHistory = () => {
    if (history.length < 2) return;
    const most = Math.max(1, ...history.map((run) => run.counts.drift + run.counts.failed));
    const step = 1000 / Math.max(history.length, 30);
    const last = history[history.length - 1];
    const picture = svg("svg", { viewBox: "0 0 1000 102", preserveAspectRatio: "none", role: "img" });
    picture.setAttribute("aria-label", `${number(history.length)} runs, at most ${number(most)} findings, `
      + `${number(last.counts.drift)} differ and ${number(last.counts.failed)} failed in the last one`);
    picture.append(svg("line", { class: "axis", x1: 0, x2: 1000, y1: 101, y2: 101 }));
    history.forEach((run, index) => {
      const [at, width] = [index * step, step * 0.8];
      // a failure among a thousand differences must be seen, and without its colour: its bar is narrow
      const failed = run.counts.failed ? Math.max(8, 100 * run.counts.failed / most) : 0;
      const middle = Math.min(100 * run.counts.drift / most, 100 - failed);
      if (middle) picture.append(bar("drift", run, at, width, 0, middle));
      if (failed) picture.append(bar("failed", run, at + width * 0.25, width * 0.5, middle, middle + failed));
    });
    // runs of a single day are told apart by their time
    const days = new Set(history.map((run) => run.finished.slice(0, 10)));
    const [first, end] = [history[0].finished, last.finished];
    const span = days.size === 1 ? `${first.replace("T", " ").slice(0, 16)} – ${end.slice(11, 16)}`
      : `${first.slice(0, 10)} – ${end.slice(0, 10)}`;
    const caption = node("figcaption", "", node("span", "", span),
      node("span", "key key-drift", "differ"), node("span", "key key-failed", "failed"),
      node("span", "", `most: ${number(most)}`));
    document.getElementById("chart").append(picture, caption);
    const body = document.querySelector("#runs tbody");
    for (const run of [...history].reverse()) {
      const { drift, failed, ok } = run.counts;
      body.append(node("tr", "", node("td", "", run.finished), node("td", "", run.playbook),
        ...[ok, drift, failed].map((count) => node("td", "number", number(count)))));
    }
    document.getElementById("history").hidden = false;
  };

  // ---- what differs in an object
  const common = (one, two, most, fromEnd) => {
    let length = 0;
    const at = (list, index) => list[fromEnd ? list.length - 1 - index : index];
    while (length < most && at(one, length) === at(two, length)) length += 1;
    return length;
  };
  // the longest common part of two lists of lines, as steps: " ", "-" or "+" with a line
  const middleSteps = (before, after) => {
    if (before.length * after.length > mostLines * mostLines / 4) {
      return [...before.map((line) => ["-", line]), ...after.map((line) => ["+", line])];
    }
    const width = after.length + 1;
    const lengths = new Uint16Array((before.length + 1) * width);
    for (let row = before.length - 1; row >= 0; row -= 1) {
      for (let column = after.length - 1; column >= 0; column -= 1) {
        lengths[row * width + column] = before[row] === after[column]
          ? lengths[(row + 1) * width + column + 1] + 1
          : Math.max(lengths[(row + 1) * width + column], lengths[row * width + column + 1]);
      }
    }
    const steps = [];
    let [row, column] = [0, 0];
    while (row < before.length || column < after.length) {
      if (row < before.length && column < after.length && before[row] === after[column]) {
        steps.push([" ", before[row]]);
        row += 1;
        column += 1;
      } else if (column === after.length || (row < before.length
          && lengths[(row + 1) * width + column] >= lengths[row * width + column + 1])) {
        steps.push(["-", before[row]]);
        row += 1;
      } else {
        steps.push(["+", after[column]]);
        column += 1;
      }
    }
    return steps;
  };
  const steps = (before, after) => {
    const least = Math.min(before.length, after.length);
    const head = common(before, after, least, false);
    const tail = common(before, after, least - head, true);
    const same = (lines) => lines.map((line) => [" ", line]);
    return [...same(before.slice(0, head)),
      ...middleSteps(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
      ...same(tail ? before.slice(-tail) : [])];
  };
  const textDiff = (before, after) => {
    const both = [before, after].every((text) => text === "" || text.endsWith("\n"));
    const lines = (text) => text === "" ? [] : (both ? text.slice(0, -1) : text).split("\n");
    const all = steps(lines(before), lines(after));
    const near = all.map(() => false);
    all.forEach(([sign], index) => {
      if (sign !== " ") near.fill(true, Math.max(0, index - 3), index + 4);
    });
    const box = node("pre");
    const has = (wanted) => all.some(([sign]) => sign === wanted);
    const signed = [...(has("-") ? [beforeLines] : []), ...(has("+") ? [afterLines] : [])];
    box.append(node("span", "gap", signed.join(", ")));
    let left = 0;
    const gap = () => {
      if (left) box.append(node("span", "gap", `… ${many(left, "equal line")}`));
      left = 0;
    };
    all.forEach(([sign, line], index) => {
      if (!near[index]) {
        left += 1;
        return;
      }
      gap();
      box.append(node({ "-": "del", "+": "ins", " ": "span" }[sign], sign === " " ? "same" : "", `${sign} ${line}`));
    });
    gap();
    return box;
  };
  const isText = (value) => typeof value === "string";
  const isLong = (value) => isText(value) && (value.includes("\n") || value.length > 200);
  const shown = (value) => {
    if (value === null || value === undefined) return node("span", "faint", "none");
    if (isText(value)) return value === "" ? node("span", "faint", "empty") : document.createTextNode(value);
    if (Array.isArray(value) && value.every((one) => typeof one !== "object")) {
      return value.length ? document.createTextNode(value.join(", ")) : node("span", "faint", "empty list");
    }
    if (typeof value !== "object") return document.createTextNode(String(value));
    return node("pre", "", JSON.stringify(value, null, 1));
  };
  const isList = (value) => Array.isArray(value) && value.every((one) => typeof one !== "object");
  // entries of a list that are in one of both sides, one per line
  const entries = (own, other, tag) => {
    const left = [...other];
    const only = own.filter((one) => {
      const at = left.indexOf(one);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    const box = node("div", "", ...only.map((one) => node(tag, "", `${tag === "del" ? "-" : "+"} ${one}`)));
    const equal = own.length - only.length;
    if (equal) box.append(node("span", "faint", `${number(equal)} equal`));
    return own.length ? box : node("span", "faint", "empty list");
  };
  const bothSides = (one, two) => isList(one) && isList(two) && JSON.stringify([...one].sort()) !== JSON.stringify([...two].sort())
    ? [entries(one, two, "del"), entries(two, one, "ins")] : [shown(one), shown(two)];
  const isMapping = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const fieldDiff = (before, after) => {
    const box = node("div", "wide");
    const body = node("tbody");
    const texts = [];
    for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const [one, two] = [before[field], after[field]];
      if (JSON.stringify(one) === JSON.stringify(two)) continue;
      if (isLong(one) || isLong(two)) texts.push(node("h4", "", field), textDiff(one || "", two || ""));
      else body.append(node("tr", "", node("th", "", field), ...bothSides(one, two).map((side) => node("td", "", side))));
    }
    if (body.children.length) {
      for (const cell of body.querySelectorAll("th")) cell.scope = "row";
      const titles = node("tr", "", ...["Field", beforeTitle, afterTitle].map((title) => node("th", "", title)));
      for (const cell of titles.children) cell.scope = "col";
      box.append(node("table", "sides", node("thead", "", titles), body));
    }
    box.append(...texts);
    return box;
  };
  const difference = ({ before, after }) => {
    if ((before === null || before === undefined) && (after === null || after === undefined)) return "";
    if (isText(before ?? "") && isText(after ?? "")) return textDiff(before ?? "", after ?? "");
    if (isMapping(before ?? {}) && isMapping(after ?? {})) return fieldDiff(before ?? {}, after ?? {});
    return fieldDiff({ value: before }, { value: after });
  };

  // ---- a change of few short values, for the line of its object
  const isShort = (value) => value === null || value === undefined || typeof value === "number" || typeof value === "boolean"
    || (isText(value) && value.length <= mostInline && !value.includes("\n"));
  const author = ({ changed_by: by }) => report.check && by ? [`; last changed by ${by}`] : [];
  const short = (value) => value === null || value === undefined ? "none" : value === "" ? "empty" : String(value);
  // the nodes of a field, or null if its change is too long
  const sides = (one, two, who) => {
    if (isShort(one) && isShort(two)) {
      // not the same digits for a number and for a string
      const show = short(one) === short(two) ? JSON.stringify : short;
      return [`${beforeName}: `, node("del", "", show(one)), `${who}, ${afterName}: `, node("ins", "", show(two))];
    }
    if (!isList(one ?? []) || !isList(two ?? [])) return null;
    const only = (own, other, tag) => (own ?? []).filter((each) => !(other ?? []).includes(each)).map((each) => node(tag, "", String(each)));
    const [removed, added] = [only(one, two, "del"), only(two, one, "ins")];
    const entries = [...removed, ...added];
    if (!entries.length || entries.length > mostEntries || !entries.every((each) => isShort(each.textContent))) return null;
    const named = (title, list) => list.length ? [[`${title}: `, ...list.flatMap((each, index) => index ? [" ", each] : [each])]] : [];
    const parts = report.check ? [...named("only on the server", removed), ...named("only in Git", added)]
      : [...named("removed", removed), ...named("added", added)];
    return [...parts.flatMap((part, index) => index ? ["; ", ...part] : part), who];
  };
  // short changes with both sides, then the names of all other fields; null if no change is short
  const inline = (finding, told) => {
    const { action, before, after } = finding;
    if (action !== "update" || !isMapping(before) || !isMapping(after)) return null;
    const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
    // several values may be from several accounts
    const [by] = changed.length === 1 ? author(finding) : [];
    const who = by ? ` (set by ${finding.changed_by})` : "";
    const changes = changed.map((field) => [field, sides(before[field], after[field], who)]).filter(([, change]) => change).slice(0, mostFields);
    if (!changes.length) return null;
    // the text has more than the fields: paths in a configuration, what cannot be compared, why a change is refused
    const [fields, ...more] = told.split("; ");
    const names = /^(differs in|updated) /.test(fields) ? fields.replace(/^(differs in|updated) /, "").split(", ") : changed;
    const left = names.filter((name) => !changes.some(([field]) => field === name));
    return [...changes.map(([field, change], index) => node("span", "", index ? "; " : "", node("span", "field", field), " ", ...change)),
      ...(left.length ? [`; also ${report.check ? "differs in" : "updated"} ${left.join(", ")}`] : []), ...more.map((part) => `; ${part}`),
      ...(by ? [] : author(finding))];
  };
  // what `enforce` does with an object that is not wanted
  const deletion = (told) => {
    const why = told.replace(/^(not wanted|deleted)(, )?/, "");
    return [node("span", "failed", report.check ? "Delete on the server" : "Deleted on the server"), ...(why ? [`: ${why}`] : [])];
  };
  const described = (finding, told) => {
    if (finding.status === "drift" && finding.action === "delete") return deletion(told);
    return [finding.status === "drift" && told === "missing" ? "missing on the server" : told];
  };

  // ---- the findings
  const days = (finding) => Math.floor((Date.parse(report.finished) - Date.parse(finding.first_seen)) / 86400000);
  const age = (finding) => {
    if (!compared) return [];
    const text = finding.since === "still" ? (days(finding) >= 1 ? `for ${many(days(finding), "day")}` : "still") : finding.since;
    return text ? [node("span", "since", text), " "] : [];
  };
  const paragraph = (title, text) => [node("p", "faint", title), node("pre", "copy", text)];
  const writes = { create: "create it on the server", update: "restore it on the server", delete: "delete it on the server" };
  const nextSteps = ({ id, status, action, kind, name }) => {
    const isWritten = commands && status === "drift" && action in writes;
    const isAdopted = commands && status !== "unknown" && !ruled.includes(kind);
    const ways = ["Accept", ...(isAdopted ? ["adopt"] : [])].join(", ");
    const box = node("details", "next", node("summary", "", ...(isWritten ? [`${ways}, or `, node("span", action === "delete" ? "failed" : "", writes[action])] : [ways])));
    const comment = `${kind} ${name}`.replace(/\s+/g, " ");
    box.append(...paragraph("Accept it with an entry of drift_ignore:", `- id: ${id}  # ${comment}\n  reason: "..."\n  until: ...`));
    const needed = commands && commands.secrets ? ` Add -e with ${commands.secrets}, which this page does not show:` : "";
    if (isWritten) {
      const [title, command] = paragraph(`${writes[action][0].toUpperCase()}${writes[action].slice(1)}, and change nothing else.${needed}`, `${commands.enforce} -e enforce_only=${id}`);
      if (action === "delete") title.className = "failed";
      box.append(title, command);
    }
    if (isAdopted) {
      const adopt = `${commands.adopt} -e adopt_findings=${id}`;
      box.append(...paragraph(`Adopt only this: write the state of the server into the folder.${needed}`,
        action === "create" ? `${adopt} -e adopt_deletions=true` : adopt));
    }
    return box;
  };
  const fill = (row) => {
    if (row.body.children.length) return;
    const one = row.finding;
    const about = node("p", "faint", `${one.host} · ${one.task}`);
    if (row.isCut) row.body.append(node("p", "", one.text));
    if (one.status === "ignored") {
      row.body.append(node("p", "", `Ignored${one.until ? ` until ${one.until}` : ""}: ${one.reason || "no reason given"}`));
    }
    if (one.since === "still") about.append(` · first seen ${minute(one.first_seen)}`);
    if (one.changed_by || one.changed_at) {
      about.append(` · last changed${one.changed_by ? ` by ${one.changed_by}` : ""}${one.changed_at ? ` on ${minute(one.changed_at)}` : ""}`);
    }
    row.body.append(difference(one));
    if (row.file) about.append(" · ", node("code", "", row.file));
    row.body.append(about);
    const ways = node("p", "ways");
    if (row.link) {
      const link = node("a", "", "Open it on its server");
      link.href = row.link;
      link.rel = "noopener noreferrer";
      link.target = "_blank";
      ways.append(link, " ");
    }
    if (one.id) {
      const self = node("a", "", "Link to this finding");
      self.href = `#${one.id}`;
      ways.append(self);
    }
    row.body.append(ways);
    if (one.id && ["drift", "unmanaged", "unknown"].includes(one.status)) row.body.append(nextSteps(one));
  };
  const makeRow = (finding, index) => ({
    finding, group: group(finding), link: links[index], file: files[index], visible: true, place: null,
    words: `${finding.kind} ${finding.name} ${finding.host}`.toLowerCase(),
  });
  const chipOf = (row) => ({ failed: "failed", unmanaged: "notes", unknown: "notes", ignored: "ignored" }[row.group]
    || (compared ? row.finding.since : ""));
  // whether a chip shows a row
  const isShown = (row, chip) => !chip || chipOf(row) === chip || (row.finding.status === "drift" && row.finding.action === chip);
  const ranks = ["failed", "new", "", "still", "notes", "ignored"];
  const rank = (row) => ranks.indexOf(chipOf(row));
  // a row gets its nodes when it is to be seen
  const draw = (row) => {
    if (row.place) return row.place;
    const { kind, name, text } = row.finding;
    const start = `${kind} ${name}: `;
    const told = text.startsWith(start) ? text.slice(start.length) : text;
    row.isCut = told.length > mostText;
    row.body = node("div", "body");
    const sign = node("span", `sign ${row.group}`, signs[row.group]);
    sign.setAttribute("aria-hidden", "true");
    const line = row.isCut ? `${told.slice(0, mostText)}…` : told;
    const change = inline(row.finding, line) || [...described(row.finding, line), ...author(row.finding)];
    // the blanks are for the name that screen readers say
    row.details = node("details", "", node("summary", "", ...age(row.finding), sign, node("span", "heard", `${titles[row.group]}: `),
      node("span", "kind", kind), " ", node("bdi", "name", name), " ", node("span", "text", ...change),
      // all other rows are below a heading with their host
      ...(severalHosts && isServer(row) ? [" ", node("span", "host faint", row.finding.host)] : [])), row.body);
    row.details.id = row.finding.id || "";
    row.details.addEventListener("toggle", () => { if (row.details.open) fill(row); });
    row.place = node("li", "", row.details);
    return row.place;
  };
  const rows = report.findings.map(makeRow);
  const parts = [];
  const drawMore = (part, most) => {
    const rest = part.visible.slice(part.drawn, part.drawn + most);
    part.list.append(...rest.map(draw));
    part.drawn += rest.length;
    const left = part.visible.length - part.drawn;
    part.more.hidden = !left;
    part.more.textContent = `Show more of ${number(left)}`;
  };
  // a server that failed as a whole is one line, without a heading of its own
  const isServer = (row) => row.finding.kind === "server" && row.group === "failed";
  const makePart = (key, members) => {
    const part = { members, visible: members, drawn: 0, list: node("ul"), more: node("button", "more") };
    part.more.type = "button";
    part.more.addEventListener("click", () => drawMore(part, mostDrawn));
    part.count = node("span", "faint count");
    part.section = key
      ? node("details", "group", node("summary", "", node("h3", "", JSON.parse(key).join(" · ")), "\u00a0", part.count), part.list, part.more)
      : node("div", "group", part.list, part.more);
    document.getElementById("list").append(part.section);
    parts.push(part);
  };
  const showObjects = () => {
    const places = new Map();
    for (const row of rows) {
      const { service, server, host } = row.finding;
      const key = isServer(row) ? "" : JSON.stringify([...(severalHosts ? [host] : []), service || "playbook",
        server || (host ? `host ${host}` : "unknown server")]);
      if (!places.has(key)) places.set(key, []);
      places.get(key).push(row);
    }
    const byNames = (one, two) => rank(one) - rank(two) || natural.compare(one.finding.kind, two.finding.kind)
      || natural.compare(one.finding.name, two.finding.name);
    for (const inside of places.values()) inside.sort(byNames);
    const order = ([one, [first]], [two, [second]]) => (one ? 1 : 0) - (two ? 1 : 0) || rank(first) - rank(second) || natural.compare(one, two);
    for (const [key, inside] of [...places].sort(order)) makePart(key, inside);
  };

  const resolvedPart = document.getElementById("resolved");
  const showResolved = () => {
    resolvedPart.querySelector("ul").append(...report.resolved.map((one) => node("li", "", node("span", "", one.text),
      ...(severalHosts ? [" ", node("span", "faint", one.host)] : []))));
    resolvedPart.querySelector("summary").textContent = `${number(allResolved)} resolved since the run of ${minute(compared)}`;
    resolvedPart.hidden = !report.resolved.length;
  };

  // ---- filters
  const form = document.getElementById("filters");
  const fields = ["show", "host", "service", "server", "kind", "what", "name"];
  let started = false;
  const options = (name, values) => {
    for (const value of [...new Set(values)].filter(Boolean).sort(natural.compare)) {
      const option = node("option", "", titles[value] || value);
      option.value = value;
      form.elements.namedItem(name).append(option);
    }
  };
  const makeChips = () => {
    const words = { "": ["finding", "findings"], notes: ["note", "notes"] };
    for (const action of Object.keys(writes)) words[action] = report.check ? [`to ${action}`] : [`${action}d`];
    for (const value of ["", "failed", ...Object.keys(writes), "new", "still", "notes", "ignored", "resolved"]) {
      const count = value === "resolved" ? allResolved : rows.filter((row) => isShown(row, value)).length;
      if (!count) continue;
      const [one, several = one] = words[value] || [value];
      const button = node("input");
      Object.assign(button, { type: "radio", name: "show", value, checked: !value });
      document.getElementById("chips").append(node("label", `chip chip-${value || "all"}`, button, ` ${number(count)} ${count === 1 ? one : several}`));
    }
  };
  const setField = (name, value) => {
    const field = form.elements.namedItem(name);
    const known = field.tagName === "INPUT" && field.type === "search" ? [value] : [...(field.options || (field.length ? field : [field]))].map((each) => each.value);
    if (known.includes(value)) {
      if (name === "show") [...form.querySelectorAll("[name=show]")].forEach((each) => { each.checked = each.value === value; });
      else field.value = value;
    }
  };
  const filter = () => {
    const given = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const wanted = Object.fromEntries(fields.map((name) => [name, given.get(name) || ""]));
    // the address can be sent to others
    const isOne = rows.some((row) => row.finding.id && `#${row.finding.id}` === location.hash);
    if (started && (String(given) || !isOne)) window.history.replaceState(null, "", String(given) ? `#${given}` : location.pathname);
    const words = wanted.name.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      row.visible = ["host", "service", "server", "kind"].every((name) => !wanted[name] || row.finding[name] === wanted[name])
        && isShown(row, wanted.show) && (!wanted.what || row.group === wanted.what)
        && words.every((word) => row.words.includes(word));
      count += row.visible ? 1 : 0;
    }
    resolvedPart.hidden = !report.resolved.length || !["", "resolved"].includes(wanted.show);
    resolvedPart.open = wanted.show === "resolved";
    let room = mostAtOnce;
    for (const part of parts) {
      part.visible = part.members.filter((row) => row.visible);
      part.drawn = 0;
      part.list.replaceChildren();
      if ("open" in part.section) part.section.open = room > 0;
      drawMore(part, Math.max(10, room));
      room -= part.drawn;
      part.section.hidden = !part.visible.length;
      part.count.textContent = number(part.visible.length);
    }
    document.getElementById("none").hidden = count > 0 || wanted.show === "resolved";
    document.getElementById("shown").textContent = `${number(count)} of ${number(rows.length)} shown`;
  };
  const showOne = () => {
    const row = rows.find((each) => each.finding.id && `#${each.finding.id}` === location.hash);
    if (!row || !row.visible) return;
    const part = parts.find((each) => each.members.includes(row));
    part.section.open = true;
    drawMore(part, part.visible.indexOf(row) + 1 - part.drawn);
    draw(row).querySelector("details").open = true;
    row.place.scrollIntoView();
  };
  const startFilters = () => {
    if (!rows.length) {
      document.getElementById("list").append(node("p", report.counts.ok ? "fine" : "note", report.counts.ok ? "Nothing differs." : "Nothing was compared."));
      return;
    }
    makeChips();
    for (const name of ["host", "service", "server", "kind"]) options(name, rows.map((row) => row.finding[name]));
    options("what", groups.filter((name) => rows.some((row) => row.group === name)));
    form.addEventListener("input", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    document.getElementById("more-filters").hidden = rows.length < fewRows;
    form.elements.namedItem("host").parentNode.hidden = !severalHosts;
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const name of fields) if (asked.get(name)) setField(name, asked.get(name));
    filter();
    started = true;
    if (rows.length === 1) draw(rows[0]).querySelector("details").open = true;
    showOne();
    addEventListener("hashchange", showOne);
  };

  // ---- on paper few findings are unfolded, and of many the most urgent are listed
  let opened = [];
  addEventListener("beforeprint", () => {
    let room = mostPrinted;
    for (const part of parts) {
      part.section.open = true;
      part.list.replaceChildren();
      part.drawn = 0;
      drawMore(part, room);
      room -= part.drawn;
    }
    const left = parts.reduce((sum, part) => sum + part.visible.length - part.drawn, 0);
    const rest = document.getElementById("rest");
    rest.hidden = !left;
    rest.textContent = `${many(left, "more finding")}: report.json lists all.`;
    const visible = rows.filter((row) => row.visible);
    opened = visible.length > mostUnfolded ? [] : visible.filter((row) => !row.details.open);
    for (const row of opened) {
      fill(row);
      row.details.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const row of opened) row.details.open = false;
    filter();
  });

  showAge();
  setInterval(showAge, 60000);
  showObjects();
  showResolved();
  startFilters();
  showHistory();
})();
