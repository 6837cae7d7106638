// SPDX-License-Identifier: GPL-3.0-or-later
// Names and values are data: they become texts of nodes, never markup.
"use strict";
(() => {
  const { report, history, links } = JSON.parse(document.getElementById("data").textContent);
  const groups = ["failed", "missing", "different", "extra", "unmanaged", "unknown", "ignored"];
  const titles = { failed: "Failed", missing: "Missing", different: "Different", extra: "Not wanted",
    unmanaged: "Not managed", unknown: "Not compared", ignored: "Ignored" };
  const mostLines = 4000;
  const mostPrinted = 500;
  const mostText = 200;
  const mostDrawn = 100;
  const mostAtOnce = 60;
  const natural = new Intl.Collator("en", { numeric: true });
  const signs = { failed: "!", missing: "+", different: "~", extra: "-", unmanaged: "?", unknown: "?", ignored: "." };
  const severalHosts = report.hosts.length > 1;

  const node = (tag, name, ...inside) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...inside);
    return made;
  };
  const number = (value) => value.toLocaleString("en");
  const group = (one) => one.status !== "drift" ? one.status
    : { create: "missing", delete: "extra" }[one.action] || "different";

  // ---- when it was
  const showAge = () => {
    const seconds = (Date.now() - Date.parse(report.finished)) / 1000;
    const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
    const [unit, size] = units.find(([, size]) => seconds >= size) || ["minute", 60];
    const count = Math.floor(seconds / size);
    const ago = count < 1 ? "just now" : `${count} ${unit}${count === 1 ? "" : "s"} ago`;
    const time = node("time", "", ago);
    time.dateTime = report.finished;
    time.title = report.finished;
    document.getElementById("age").replaceChildren("Checked ", time);
  };

  // ---- the runs so far
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
    const both = before.endsWith("\n") && after.endsWith("\n");
    const lines = (text) => text === "" ? [] : (both ? text.slice(0, -1) : text).split("\n");
    const all = steps(lines(before), lines(after));
    const near = all.map(() => false);
    all.forEach(([sign], index) => {
      if (sign !== " ") near.fill(true, Math.max(0, index - 3), index + 4);
    });
    const box = node("pre");
    let left = 0;
    const gap = () => {
      if (left) box.append(node("span", "gap", `… ${number(left)} equal line${left === 1 ? "" : "s"}`));
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
    if (value === null || value === undefined) return node("span", "faint", "—");
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
      const head = ["Field", ...(report.check ? ["Is there", "Wanted"] : ["Before", "After"])];
      const titles = node("tr", "", ...head.map((title) => node("th", "", title)));
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

  // ---- the objects
  const fill = (row) => {
    if (row.body.children.length) return;
    const one = row.finding;
    const about = node("p", "faint", `${one.host} · ${one.task}`);
    if (row.isCut) row.body.append(node("p", "", one.text));
    if (one.status === "ignored") {
      row.body.append(node("p", "", `Ignored${one.until ? ` until ${one.until}` : ""}: ${one.reason || "no reason given"}`));
    }
    if (one.since === "still") about.append(` · first seen ${one.first_seen}`);
    row.body.append(difference(one), about);
    if (row.link) {
      const link = node("a", "", "Open it on its server");
      link.href = row.link;
      link.rel = "noopener noreferrer";
      link.target = "_blank";
      row.body.append(link);
    }
  };
  const makeRow = (finding, index) => ({
    finding, group: group(finding), link: links[index], visible: true, place: null,
    words: `${finding.kind} ${finding.name} ${finding.host}`.toLowerCase(),
  });
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
    row.details = node("details", "", node("summary", "", sign, node("span", "kind", kind), node("bdi", "name", name),
      node("span", "text", row.isCut ? `${told.slice(0, mostText)}…` : told),
      ...(row.finding.since ? [node("span", "since", row.finding.since)] : []),
      ...(severalHosts ? [node("span", "host faint", row.finding.host)] : [])), row.body);
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
  const makePart = (section, members, name) => {
    const part = { section, members, name, visible: members, drawn: 0,
      title: node("h4", name), list: node("ul"), more: node("button", "more") };
    part.more.type = "button";
    part.more.addEventListener("click", () => drawMore(part, mostDrawn));
    part.box = node("div", "", part.title, part.list, part.more);
    section.append(part.box);
    parts.push(part);
  };
  const showObjects = () => {
    const places = new Map();
    for (const row of rows) {
      const { service, server, host } = row.finding;
      const key = JSON.stringify([...(severalHosts ? [host] : []), service || "playbook",
        server || (host ? `host ${host}` : "unknown server")]);
      if (!places.has(key)) places.set(key, []);
      places.get(key).push(row);
    }
    const failures = (inside) => inside.filter((row) => row.group === "failed").length;
    const order = ([one, first], [two, second]) => (failures(second) > 0) - (failures(first) > 0) || natural.compare(one, two);
    for (const [key, inside] of [...places].sort(order)) {
      inside.sort((one, two) => natural.compare(one.finding.kind, two.finding.kind) || natural.compare(one.finding.name, two.finding.name));
      const section = node("details", "group", node("summary", "", node("h3", "", JSON.parse(key).join(" · ")), node("span", "faint count", "")));
      for (const name of groups) {
        const members = inside.filter((row) => row.group === name);
        if (members.length) makePart(section, members, name);
      }
      document.getElementById("list").append(section);
    }
  };

  const showMended = () => {
    const place = document.getElementById("mended");
    place.querySelector("ul").append(...report.mended.map((one) => node("li", "", node("span", "", one.text),
      ...(report.hosts.length > 1 ? [node("span", "faint", ` ${one.host}`)] : []))));
    place.querySelector("summary").textContent = `Mended since the last run: ${number(report.mended.length)}`;
    place.hidden = !report.mended.length;
  };

  // ---- filters
  const form = document.getElementById("filters");
  const fields = ["host", "service", "server", "kind", "since", "what", "name"];
  let started = false;
  const options = (name, values) => {
    for (const value of [...new Set(values)].filter(Boolean).sort(natural.compare)) {
      const option = node("option", "", titles[value] || value);
      option.value = value;
      form.elements.namedItem(name).append(option);
    }
  };
  const filter = () => {
    const wanted = Object.fromEntries(fields.map((name) => [name, form.elements.namedItem(name).value]));
    // the address can be sent to others
    const given = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    const isOne = rows.some((row) => row.finding.id && `#${row.finding.id}` === location.hash);
    if (started && (String(given) || !isOne)) window.history.replaceState(null, "", String(given) ? `#${given}` : location.pathname);
    const words = wanted.name.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      row.visible = ["host", "service", "server", "kind", "since"].every((name) => !wanted[name] || row.finding[name] === wanted[name])
        && (!wanted.what || row.group === wanted.what) && words.every((word) => row.words.includes(word));
      count += row.visible ? 1 : 0;
    }
    const seen = new Map();
    let room = mostAtOnce;
    for (const part of parts) {
      part.visible = part.members.filter((row) => row.visible);
      part.drawn = 0;
      part.list.replaceChildren();
      if (!seen.has(part.section)) part.section.open = room > 0;
      drawMore(part, Math.max(10, room));
      room -= Math.min(part.visible.length, Math.max(10, room));
      part.box.hidden = !part.visible.length;
      part.title.textContent = `${titles[part.name]}: ${number(part.visible.length)}`;
      seen.set(part.section, (seen.get(part.section) || 0) + part.visible.length);
    }
    for (const [section, visible] of seen) {
      section.hidden = !visible;
      section.querySelector(".count").textContent = number(visible);
    }
    document.getElementById("none").hidden = count > 0;
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
      const all = report.counts.ok;
      const good = all === 1 ? "The only object is as wanted." : `All ${number(all)} objects are as wanted.`;
      document.getElementById("list").append(node("p", "fine", all ? good : "Nothing was compared."));
      return;
    }
    for (const name of ["host", "service", "server", "kind", "since"]) options(name, rows.map((row) => row.finding[name]));
    options("what", groups.filter((name) => rows.some((row) => row.group === name)));
    form.addEventListener("input", filter);
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    form.elements.namedItem("host").parentNode.hidden = !severalHosts;
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const name of fields) {
      const field = form.elements.namedItem(name);
      const value = asked.get(name) || "";
      if (field.tagName === "INPUT" || [...field.options].some((option) => option.value === value)) field.value = value;
    }
    filter();
    started = true;
    showOne();
    addEventListener("hashchange", showOne);
  };

  // ---- on paper what differs is shown, unless there is too much of it
  let opened = [];
  addEventListener("beforeprint", () => {
    for (const part of parts) {
      drawMore(part, part.visible.length);
      part.section.open = true;
    }
    const closed = rows.filter((row) => row.visible && !row.details.open);
    opened = closed.length > mostPrinted ? [] : closed;
    for (const row of opened) {
      fill(row);
      row.details.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const row of opened) row.details.open = false;
  });

  showAge();
  setInterval(showAge, 60000);
  showHistory();
  showObjects();
  showMended();
  startFilters();
})();
