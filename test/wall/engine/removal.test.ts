import { expect, test } from "vitest";
import { removeSurely } from "../../../src/wall/engine/removal.ts";
import { failureOf, type Route, say, startEngine } from "../../engine/engine-server.ts";

/** In place of a status: the engine ends in the middle of a question. */
const gone = 0;

/** An engine that answers a removal, and then a question about the container, with these; the last again and again. */
async function engineWith(removals: readonly number[], looks: readonly number[]) {
  const next = (list: readonly number[]): Route => {
    let at = 0;
    return (request, response) => {
      const status = list[Math.min(at++, list.length - 1)] as number;
      if (status === gone) request.destroy();
      else say(response, status, { message: "odd" });
    };
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
  const { client, count } = await engineWith([gone], [gone]);
  await failureOf(removeSurely(client, "box", { timeoutMs: 1_000 }));
  expect(count("DELETE")).toBe(1);
});
