import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, describe, expect, test } from "vitest";
import { type Furnishing, furnish } from "../../src/keeper/furnish.ts";
import type { MaskTokens } from "../../src/keeper/masked-credentials.ts";
import type { ContainerPlan } from "../../src/plan/container.ts";
import { planFor } from "../plan/ordinary.ts";

const home = mkdtempSync(join(tmpdir(), "podbot-furnish-"));
afterAll(() => rmSync(home, { recursive: true }));
mkdirSync(join(home, ".codex"));
writeFileSync(join(home, ".codex/auth.json"), '{"OPENAI_API_KEY":"the-real-key"}');
writeFileSync(join(home, ".codex/config.toml"), 'bearer = "another-real-key"');

/** What is put into a container that has one user, root, and what is said of it. */
async function furnished(maskTokens: MaskTokens | null) {
  const archives: string[] = [];
  const said: Furnishing[] = [];
  const files = {
    put: async (tar: Readable) => void archives.push((await buffer(tar)).toString("latin1")),
    get: async () => null,
  };
  const container = {
    user: { uid: 0, gid: 0 },
    readOnlyRoot: false,
    credentials: [".codex"],
  } as Partial<ContainerPlan>;
  const plan = { ...planFor([], {}), home: "/root" };
  await furnish(files, plan, container as ContainerPlan, { home, maskTokens }, (done) => said.push(done));
  return { archive: archives.join(""), said };
}

describe("a container finds its agent's login", () => {
  test("as it is on the host", async () => {
    const { archive, said } = await furnished(null);
    expect(archive).toContain("the-real-key");
    expect(archive).toContain("another-real-key");
    expect(said).toEqual([{ kind: "credentials-copied", paths: ["/root/.codex"] }]);
  });

  test("with surrogates, where the owner wants it masked, and without what may hold secrets", async () => {
    const { archive, said } = await furnished(() => "a-surrogate");
    expect(archive).toContain("a-surrogate");
    expect(archive).not.toContain("real-key");
    expect(said).toEqual([
      { kind: "warning", text: expect.stringContaining(".codex is copied only in part") },
      { kind: "credentials-copied", paths: ["/root/.codex/auth.json"] },
    ]);
  });
});
