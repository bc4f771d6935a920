import { Resolver } from "node:dns/promises";
import { expect, test } from "vitest";
import { startModel } from "./process.ts";

test("provider and name server in a process of their own tell what they have heard, and end with whom they serve", async () => {
  const model = await startModel();
  await fetch(`${model.url}/v1/models`, { headers: { "x-api-key": "key" } });
  const resolver = new Resolver({ timeout: 5_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${model.namesPort}`]);
  await expect(resolver.resolve4("Some.Where.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
  expect(await model.heard()).toMatchObject({
    requests: [{ method: "GET", path: "/v1/models", headers: { "x-api-key": "key" } }],
    names: ["some.where.example"],
  });
  expect(await model.heard()).toEqual({ requests: [], names: [] });
  await model[Symbol.asyncDispose]();
  await expect(fetch(model.url)).rejects.toThrow();
  expect(() => process.kill(model.pid, 0)).toThrow("ESRCH");
});

test("whoever cannot be started in another network is told of", async () => {
  await expect(startModel({ before: ["false"] })).rejects.toThrow("ended with 1");
});
