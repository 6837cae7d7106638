// SPDX-License-Identifier: GPL-3.0-or-later
// Guides come before the pages of plugins, and a guide whose keywords are those of the question comes
// first. `tools/docs.py` writes KEYWORDS before this script, from `keywords.yml`.
const LAST = /^(CHANGELOG|README|index)/;

// The search skips numbers: a status leads to its kind of error.
const KINDS = {
  401: "auth", 403: "permission", 404: "not_found", 408: "timeout", 409: "conflict",
  429: "rate_limited", 500: "server", 502: "server", 503: "server", 504: "server",
};
const query = () => new URLSearchParams(location.search).get("q") || "";
const asked = query().replace(/\b[45]\d\d\b/g, (status) => KINDS[status] || status);
if (asked !== query()) {
  history.replaceState(null, "", `?q=${encodeURIComponent(asked)}`);
}
const isAbout = (docname) => {
  const keywords = (KEYWORDS[docname] || "").split(" ");
  return query().toLowerCase().split(/\s+/).every((word) => keywords.includes(word));
};

Scorer = {
  score: ([docname, , , , score]) => {
    if (LAST.test(docname)) return score - 20;
    if (!docname.startsWith("docs/")) return score;
    return score + (isAbout(docname) ? 100 : 20);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
