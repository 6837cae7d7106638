// SPDX-License-Identifier: GPL-3.0-or-later
// Guides come before the pages of plugins, and pages for contributors come last.
const FOR_CONTRIBUTORS =
  /^(docs\/(interfaces\/|contract|architecture|requests|glossary)|CONTRIBUTING|CHANGELOG|README|index)/;

// The search skips numbers: a status leads to its kind of error.
const KINDS = {
  401: "auth", 403: "permission", 404: "not_found", 408: "timeout", 409: "conflict",
  429: "rate_limited", 500: "server", 502: "server", 503: "server", 504: "server",
};
const query = new URLSearchParams(location.search).get("q");
if (query && query.trim() in KINDS) {
  history.replaceState(null, "", `?q=${KINDS[query.trim()]}`);
}

Scorer = {
  score: ([docname, , , , score]) => {
    if (FOR_CONTRIBUTORS.test(docname)) return score - 20;
    return docname.startsWith("docs/") ? score + 20 : score;
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
