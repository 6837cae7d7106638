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
await step("attachments", async () =>
  (await server.contentAttachments.getAttachments({ id: page.id })).results.map((each) => [each.title, each.extensions.fileSize]));
await step("remove label", async () => {
  await server.contentLabels.removeLabelFromContent({ id: page.id, label: "node" });
  return (await server.contentLabels.getLabelsForContent({ id: page.id })).results;
});
await step("properties", async () => {
  await server.contentProperties.createContentProperty({ id: page.id, key: "made-by", value: { name: "node" } });
  await server.contentProperties.updateContentProperty({ id: page.id, key: "made-by", value: { name: "js" }, version: { number: 2 } });
  const { value, version } = await server.contentProperties.getContentProperty({ id: page.id, key: "made-by" });
  await server.contentProperties.deleteContentProperty({ id: page.id, key: "made-by" });
  const left = (await server.contentProperties.getContentProperties({ id: page.id })).results.length;
  return [value.name, version.number, left];
});
await step("move", async () => {
  const moved = { id: page.id, type: "page", title: "Made by node", body: storage("<p>two</p>") };
  await server.content.updateContent({ ...moved, version: { number: 3 }, ancestors: [{ id: "1002" }] });
  const { ancestors } = await server.content.getContentById({ id: page.id, expand: ["ancestors"] });
  await server.content.updateContent({ ...moved, version: { number: 4 }, ancestors: [{ id: "1001" }] });
  return ancestors.map((each) => each.id);
});
await step("descendants", async () =>
  (await server.contentChildrenAndDescendants.getDescendantsOfType({ id: "1001", type: "page" })).results.some((each) => each.id === page.id));
await step("children", async () =>
  (await server.contentChildrenAndDescendants.getContentChildrenByType({ id: "1001", type: "page" })).results.map((each) => each.title));
await step("delete", () => server.content.deleteContent({ id: page.id }));
await step("missing", () => server.content.getContentById({ id: page.id }));
