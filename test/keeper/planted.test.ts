// @module-tag security
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { trustedEnvironment } from "../../src/keeper/engine.ts";
import { ownIdentity } from "../../src/keeper/furnish.ts";
import { planFor } from "../plan/ordinary.ts";

/**
 * An agent puts programs where its owner's PATH leads (as in a project's `.venv/bin`), and the owner then starts
 * Podbot. Each leaves a mark when it is executed.
 */
const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-planted-")));
chmodSync(directory, 0o755);
afterAll(() => rmSync(directory, { recursive: true }));
const bundle = join(directory, "caller.cjs");
const source = (path: string) => JSON.stringify(join(import.meta.dirname, "../../src", path));

const caller = `
import { connectEngine } from ${source("engine/client.ts")};
import { parseEndpoint } from ${source("engine/endpoint.ts")};
import { ping } from ${source("engine/ping.ts")};
import { openPrivateService } from ${source("engine/service.ts")};
import { reopenEngine } from ${source("keeper/engine.ts")};
import { findOnPath } from ${source("machine/programs.ts")};
const [way, state] = process.argv.slice(2);
const env = process.env;
const endpoint = "ssh://nobody@podbot.invalid/run/podman.sock";
const places = { env, state };
const ways = {
  "podman, as Podbot does": () => reopenEngine({ endpoint: "unix:///none", service: { runtime: null } }, places),
  "podman, by PATH": () =>
    openPrivateService({ podman: findOnPath("podman", env.PATH), directory: state, env, uid: process.getuid() }),
  "ssh, as Podbot does": async () => ping(await reopenEngine({ endpoint, service: null }, places)),
  "ssh, by PATH": () => ping(connectEngine(parseEndpoint(endpoint), { env })),
};
ways[way]().then(() => process.exit(0), (error) => {
  console.log(error.constructor.name);
  process.exit(0);
});
`;

beforeAll(async () => {
  const entry = join(directory, "caller.ts");
  writeFileSync(entry, caller);
  await build({
    entryPoints: [entry],
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    outfile: bundle,
    logLevel: "error",
    define: { "import.meta.dirname": JSON.stringify(join(import.meta.dirname, "../../src/machine")) },
    nodePaths: [join(import.meta.dirname, "../../node_modules")],
  });
});

/** A directory with programs of somebody's, and what tells that one of them was executed. */
function plant(uid: number) {
  const own = mkdtempSync(join(directory, "own-"));
  const bin = join(own, "bin");
  const state = join(own, "state");
  for (const path of [bin, state]) mkdirSync(path);
  for (const name of ["podman", "ssh", "git", "crun", "conmon"]) {
    const path = join(bin, name);
    writeFileSync(path, `#!/bin/sh\necho ${name} >>${own}/mark\nexit 1\n`);
    chmodSync(path, 0o755);
    chownSync(path, uid, uid);
  }
  for (const path of [own, bin, state]) chownSync(path, uid, uid);
  return { own, bin, state, isMarked: () => existsSync(join(own, "mark")) };
}

const canAct = process.getuid?.() === 0 && spawnSync("unshare", ["--mount", "true"]).status === 0;

describe.runIf(canAct).each([0, 1_000])("called by the user %i, a planted", (uid) => {
  /** As that user, on a machine that has neither podman nor ssh: no real engine is to be started by a test. */
  async function call(way: string) {
    const { own, bin, state, isMarked } = plant(uid);
    const real = ["/usr/bin", "/usr/local/bin", "/bin"].flatMap((at) =>
      ["podman", "ssh"].map((name) => `${at}/${name}`),
    );
    const hide = real.map((path) => `[ ! -e ${path} ] || mount -n --bind /dev/null ${path}`).join("\n");
    const script = `${hide}\nexec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`;
    const words = ["sh", "-c", script, "sh", process.execPath, bundle, way, state];
    const env = { HOME: own, XDG_RUNTIME_DIR: state, TMPDIR: state, PATH: `${bin}:/usr/local/bin:/usr/bin:/bin` };
    const { stdout } = await promisify(execFile)("unshare", ["--mount", "--propagation", "private", ...words], {
      env,
      cwd: own,
      timeout: 100_000,
    });
    return { isMarked: isMarked(), said: stdout.trim() };
  }

  test.each([
    ["podman", "NoPodman"],
    ["ssh", "EngineError"],
  ])("%s is not executed, though PATH leads to it", async (name, said) => {
    expect(await call(`${name}, as Podbot does`)).toEqual({ isMarked: false, said });
    // The control: by PATH it would have been.
    expect(await call(`${name}, by PATH`)).toEqual({ isMarked: true, said: "EngineError" });
  });
});

test("a planted git is not asked who the owner is, though PATH leads to it", async () => {
  const { own, bin, isMarked } = plant(process.getuid?.() ?? 0);
  const env = { HOME: own, PATH: `${bin}:/usr/bin:/bin` };
  await ownIdentity(planFor([]), env);
  expect(isMarked()).toBe(false);
  spawnSync("git", ["--version"], { env });
  expect(isMarked()).toBe(true);
});

test("nothing else of the environment is changed for what is executed out here", () => {
  const env = { PATH: "/planted", HOME: "/home/u", SSH_AUTH_SOCK: "/s", NONE: undefined };
  const { PATH, ...rest } = trustedEnvironment(env);
  expect(rest).toEqual({ HOME: "/home/u", SSH_AUTH_SOCK: "/s", NONE: undefined });
  expect(PATH).not.toContain("planted");
  expect(trustedEnvironment({})["PATH"]).toContain("/usr/bin");
});
