// SPDX-License-Identifier: GPL-3.0-or-later
// What the npm package `jira.js` makes of an issue tracker: a line for each step.

import { login, step } from "./steps.mjs";
import { Version2Client } from "jira.js";

const { url, secret } = login();
const server = new Version2Client({ host: url, authentication: { oauth2: { accessToken: secret } } });

await step("server", async () => (await server.serverInfo.getServerInfo()).deploymentType);
await step("me", async () => (await server.myself.getCurrentUser()).name);
await step("project", async () => (await server.projects.getProject({ projectIdOrKey: "REL" })).name);
await step("search", async () => {
  const found = await server.issueSearch.searchForIssuesUsingJqlPost({ jql: "project = OPS ORDER BY key", startAt: 120, maxResults: 50, fields: ["summary"] });
  return [found.total, found.startAt, found.issues.length];
});
const project = (await server.projects.getProject({ projectIdOrKey: "REL" })).id;
let key;
await step("create", async () => {
  const fields = { project: { key: "REL" }, issuetype: { name: "Task" }, summary: "made by jira.js" };
  key = (await server.issues.createIssue({ fields })).key;
  return key.startsWith("REL-");
});
await step("edit", () => server.issues.editIssue({ issueIdOrKey: key, fields: { labels: ["one", "two"] } }));
await step("get", async () => (await server.issues.getIssue({ issueIdOrKey: key })).fields.labels);
await step("comment", async () => (await server.issueComments.addComment({ issueIdOrKey: key, comment: "a comment" })).body);
await step("comments", async () => (await server.issueComments.getComments({ issueIdOrKey: key })).total);
await step("transitions", async () =>
  (await server.issues.getTransitions({ issueIdOrKey: key })).transitions.map((each) => each.id));
await step("transition", () => server.issues.doTransition({ issueIdOrKey: key, transition: { id: "11" } }));
await step("attach", async () =>
  (await server.issueAttachments.addAttachment({ issueIdOrKey: key, attachment: { filename: "note.txt", file: Buffer.from("content") } }))[0].size);
await step("link", () =>
  server.issueLinks.linkIssues({ type: { name: "Relates" }, inwardIssue: { key }, outwardIssue: { key: "REL-1" } }));
await step("version", async () => {
  const version = await server.projectVersions.createVersion({ name: "8.8.8", projectId: project });
  await server.projectVersions.updateVersion({ id: version.id, released: true });
  return (await server.projectVersions.getProjectVersions({ projectIdOrKey: "REL" })).find((each) => each.name === "8.8.8").released;
});
await step("fields", async () => (await server.issueFields.getFields()).some((each) => each.id === "fixVersions"));
await step("permissions", async () =>
  (await server.permissions.getMyPermissions({ projectKey: "REL", permissions: "CREATE_ISSUES" })).permissions.CREATE_ISSUES.havePermission);
await step("users", async () => (await server.userSearch.findUsers({ username: "alice" })).map((each) => each.name));
await step("download", async () => {
  const { attachment } = (await server.issues.getIssue({ issueIdOrKey: key })).fields;
  return (await server.issueAttachments.getAttachment({ id: attachment[0].id })).filename;
});
await step("versions", async () => {
  const own = (await server.projectVersions.getProjectVersions({ projectIdOrKey: "REL" })).find((each) => each.name === "8.8.8");
  const { issuesUnresolvedCount } = await server.projectVersions.getVersionUnresolvedIssues({ id: own.id });
  await server.projectVersions.moveVersion({ id: own.id, position: "First" });
  const [first] = await server.projectVersions.getProjectVersions({ projectIdOrKey: "REL" });
  await server.projectVersions.deleteAndReplaceVersion({ id: own.id });
  const left = (await server.projectVersions.getProjectVersions({ projectIdOrKey: "REL" })).some((each) => each.name === "8.8.8");
  return [issuesUnresolvedCount, first.name, left];
});
await step("missing", () => server.issues.getIssue({ issueIdOrKey: "REL-99999" }));
