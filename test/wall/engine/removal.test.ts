import { expect, test } from "vitest";
import { removeSurely } from "../../../src/wall/engine/removal.ts";
import { failureOf, type Route, say, startEngine } from "../../engine/engine-server.ts";

/** An engine that answers a removal, and then a question about the container, with these; the last again and again. */
async function engineWith(removals: readonly number[], looks: readonly number[]) {
  const next = (list: readonly number[]): Route => {
    let at = 0;
    return (_request, response) => say(response, list[Math.min(at++, list.length - 1)] as number, { message: "odd" });
  };
  const engine = await startEngine({
    "DELETE /v1.40/containers/box": next(removals),
    "GET /v1.40/containers/box/json": next(looks),
  });
  const count = (method: string) =>
    engine.calls.filter((call) => call.method === method && call.path !== "/_ping").length;
  return { ...engine, count };
}

test.each([
  ["at once", [204], [200], 1],
  ["by somebody else", [404], [200], 1],
  ["in the end, after failures", [500, 500, 204], [200], 3],
  ["by the engine itself, which fails meanwhile", [500], [500, 404], 2],
])("a container is removed %s", async (_, removals, looks, tries) => {
  const { client, count } = await engineWith(removals, looks);
  await removeSurely(client, "box");
  expect(count("DELETE")).toBe(tries);
});

test("what cannot be removed is an error in the end, in the engine's own words", async () => {
  const { client, count } = await engineWith([500], [200]);
  const error = await failureOf(removeSurely(client, "box"));
  expect(error).toMatchObject({ details: { status: 500 } });
  expect(count("DELETE")).toBe(21);
});

test("an engine that is not there is not asked again", async () => {
  const { client, server } = await engineWith([500], [200]);
  server.close();
  client[Symbol.dispose]();
  const before = performance.now();
  await failureOf(removeSurely(client, "box", { timeoutMs: 1_000 }));
  expect(performance.now() - before).toBeLessThan(1_800);
});
