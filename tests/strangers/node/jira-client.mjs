// SPDX-License-Identifier: GPL-3.0-or-later
// What the npm package `jira-client` makes of an issue tracker: a line for each step.

import { Readable } from "node:stream";
import { login, step } from "./steps.mjs";
import module from "jira-client";

const JiraApi = module.default ?? module;
const { url, user, secret } = login();
const { protocol, hostname, port, pathname } = new URL(url);
const server = new JiraApi({
  protocol: protocol.slice(0, -1), host: hostname, port, base: pathname.slice(1),
  username: user, password: secret, apiVersion: "2",
});

await step("server", async () => (await server.getServerInfo()).deploymentType);
await step("me", async () => (await server.getCurrentUser()).name);
await step("project", async () => (await server.getProject("REL")).name);
await step("components", async () => (await server.listComponents("REL")).map((each) => each.name));
await step("fields", async () => (await server.listFields()).some((each) => each.id === "fixVersions"));
await step("find", async () => (await server.findIssue("REL-1")).fields.summary);
await step("search", async () => {
  const found = await server.searchJira("project = OPS ORDER BY key", { startAt: 100, maxResults: 50, fields: ["summary"] });
  return [found.total, found.startAt, found.issues.length];
});
await step("wrong search", () => server.searchJira("nonsense = 1"));
let key;
await step("create", async () => {
  const fields = { project: { key: "REL" }, issuetype: { name: "Task" }, summary: "made by node", labels: ["node"] };
  key = (await server.addNewIssue({ fields })).key;
  return key.startsWith("REL-");
});
await step("update", () => server.updateIssue(key, { fields: { summary: "changed by node" } }));
await step("updated", async () => (await server.findIssue(key)).fields.summary);
await step("assign", () => server.updateAssignee(key, "alice"));
await step("comment", async () => (await server.addComment(key, "a comment")).body);
await step("comments", async () => (await server.getComments(key)).comments.map((each) => each.body));
let attached;
await step("attach", async () => {
  const content = Readable.from([Buffer.from("content")]);
  content.path = "note.txt";
  [attached] = await server.addAttachmentOnIssue(key, content);
  return attached.size;
});
await step("download", async () => (await server.downloadAttachment(attached)).toString());
await step("transitions", async () => (await server.listTransitions(key)).transitions.map((each) => each.name));
await step("transition", () => server.transitionIssue(key, { transition: { id: "11" } }));
await step("status", async () => (await server.findIssue(key, "changelog")).fields.status.name);
await step("changelog", async () => (await server.findIssue(key, "changelog")).changelog.histories.length > 0);
await step("link", () => server.issueLink({ type: { name: "Blocks" }, inwardIssue: { key }, outwardIssue: { key: "REL-1" } }));
await step("links", async () => (await server.findIssue(key)).fields.issuelinks.map((each) => each.outwardIssue.key));
await step("versions", async () => (await server.getVersions("REL")).map((each) => each.name));
await step("unlink", async () => {
  await server.deleteIssueLink((await server.findIssue(key)).fields.issuelinks[0].id);
  return (await server.findIssue(key)).fields.issuelinks;
});
let version;
await step("new version", async () => {
  version = await server.createVersion({ name: "9.9.9", project: "REL" });
  return version.released;
});
await step("unresolved", async () => server.getUnresolvedIssueCount(version.id));
await step("release", async () => (await server.updateVersion({ id: version.id, released: true })).released);
await step("delete version", () => server.deleteVersion(version.id));
await step("missing", () => server.findIssue("REL-99999"));
