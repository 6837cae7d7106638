// SPDX-License-Identifier: GPL-3.0-or-later
// What the npm package `confluence.js` makes of a wiki: a line for each step.

import { login, step } from "./steps.mjs";
import { ConfluenceClient } from "confluence.js";

const { url, secret } = login();
const { origin, pathname } = new URL(url);
const server = new ConfluenceClient({
  host: origin, apiPrefix: `${pathname}/rest`, authentication: { oauth2: { accessToken: secret } },
});
const storage = (value) => ({ storage: { value, representation: "storage" } });

await step("spaces", async () => (await server.space.getSpaces()).results.map((each) => each.key));
await step("space", async () => (await server.space.getSpace({ spaceKey: "REL" })).name);
await step("get", async () =>
  (await server.content.getContentById({ id: "1003", expand: ["version", "body.storage"] })).body.storage.value);
await step("find", async () =>
  (await server.content.getContent({ spaceKey: "REL", title: "Handbook" })).results.map((each) => each.id));
await step("search", async () =>
  (await server.content.searchContentByCQL({ cql: 'space = REL and title = "Handbook"' })).results.map((each) => each.id));
let page;
await step("create", async () => {
  page = await server.content.createContent({
    type: "page", title: "Made by node", space: { key: "REL" }, ancestors: [{ id: "1001" }], body: storage("<p>one</p>"),
  });
  return page.version.number;
});
await step("update", async () =>
  (await server.content.updateContent({
    id: page.id, type: "page", title: "Made by node", version: { number: 2 }, body: storage("<p>two</p>"),
  })).version.number);
await step("old version", () =>
  server.content.updateContent({ id: page.id, type: "page", title: "Made by node", version: { number: 2 }, body: storage("<p>3</p>") }));
await step("labels", async () =>
  (await server.contentLabels.addLabelsToContent({ id: page.id, body: [{ prefix: "global", name: "node" }] })).results.map((each) => each.name));
await step("get labels", async () =>
  (await server.contentLabels.getLabelsForContent({ id: page.id })).results.map((each) => each.name));
await step("attach", async () =>
  (await server.contentAttachments.createAttachments({
    id: page.id, attachments: [{ filename: "note.txt", file: Buffer.from("content"), contentType: "text/plain", minorEdit: true }],
  })).results.map((each) => each.title));
await step("children", async () =>
  (await server.contentChildrenAndDescendants.getContentChildrenByType({ id: "1001", type: "page" })).results.map((each) => each.title));
await step("delete", () => server.content.deleteContent({ id: page.id }));
await step("missing", () => server.content.getContentById({ id: page.id }));
