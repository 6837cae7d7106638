// SPDX-License-Identifier: GPL-3.0-or-later
// What the npm package `jenkins` makes of a CI server: a line for each step.

import { login, step, until } from "./steps.mjs";
import Jenkins from "jenkins";

const { url, user, secret } = login();
const base = new URL(url);
base.username = user;
base.password = secret;
const server = new Jenkins({ baseUrl: base.href, crumbIssuer: true });
const config = "<project><description>made</description><properties/></project>";

const ended = async (name, item) => {
  const left = await until(() => server.queue.item(item), (each) => each.executable);
  const number = left.executable.number;
  return until(() => server.build.get(name, number), (each) => !each.building);
};

await step("jobs", async () =>
  (await server.job.list()).map((each) => each.name).filter((each) => /^(no-|delivery)/.test(each)));
await step("create", () => server.job.create("made by node", config));
await step("exists", () => server.job.exists("made by node"));
await step("config", () => server.job.config("made by node"));
await step("change", () => server.job.config("made by node", config.replace("made", "new")));
await step("get", async () => (await server.job.get("made by node")).description);
await step("disable", () => server.job.disable("made by node"));
await step("disabled", async () => (await server.job.get("made by node")).buildable);
await step("enable", () => server.job.enable("made by node"));
await step("copy", () => server.job.copy("made by node", "copy by node"));
await step("delete", () => server.job.destroy("made by node"));
await step("deleted", () => server.job.exists("made by node"));
await step("build", async () => {
  const parameters = { VERSION: "4.0", CHANNEL: "beta" };
  const name = ["delivery", "toolchain"];
  const build = await ended(name, await server.job.build({ name, parameters }));
  return build.result;
});
await step("log", async () =>
  (await server.build.log({ name: ["delivery", "toolchain"], number: 1 })).includes("version 4.0"));
await step("stop", async () => {
  const item = await server.job.build("slow");
  const left = await until(() => server.queue.item(item), (each) => each.executable);
  await server.build.stop("slow", left.executable.number);
  return (await ended("slow", item)).result;
});
await step("queue", async () => {
  const item = await server.job.build("offline");
  const waiting = (await server.queue.list()).map((each) => each.task.name);
  // it takes only the 302 that old releases answer
  const said = await server.queue.cancel(item).catch((error) => error.message.replace(/\d+/, "N"));
  return [waiting, said, (await server.queue.item(item)).cancelled];
});
await step("plugins", async () => (await server.plugin.list({ depth: 1 })).some((each) => each.shortName === "git"));
await step("missing", () => server.job.get("no such job"));
