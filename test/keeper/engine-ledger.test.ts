import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { forgetEngine, keyOf, notedEngines, noteEngine } from "../../src/keeper/engine-ledger.ts";

function makeState(): string {
  const state = realpathSync(mkdtempSync(join(tmpdir(), "podbot-ledger-")));
  onTestFinished(() => rmSync(state, { recursive: true }));
  return state;
}

const docker = { endpoint: "unix:///run/docker.sock", service: null };
const own = { endpoint: "unix:///run/user/1000/podbot/engines/podman/s.sock", service: { runtime: null } };
const crun = { endpoint: own.endpoint, service: { runtime: "crun" } };
const sorted = (state: string) => notedEngines(state).map(keyOf).sort();

test("an engine that was noted is known until it is forgotten", () => {
  const state = makeState();
  expect(notedEngines(state)).toEqual([]);
  noteEngine(state, docker);
  noteEngine(state, docker);
  expect(notedEngines(state)).toEqual([docker]);
  noteEngine(state, own);
  noteEngine(state, crun);
  expect(sorted(state)).toEqual([docker, own, crun].map(keyOf).sort());
  forgetEngine(state, own);
  forgetEngine(state, own);
  expect(sorted(state)).toEqual([docker, crun].map(keyOf).sort());
});

test("the same address is another engine, if it is a service of Podbot's with another runtime", () => {
  const keys = [docker, { ...docker, service: { runtime: null } }, own, crun].map(keyOf);
  expect(new Set(keys).size).toBe(keys.length);
});

test("only the owner can read what is noted", () => {
  const state = makeState();
  noteEngine(state, docker);
  const [name = ""] = readdirSync(join(state, "engines"));
  expect(statSync(join(state, "engines")).mode & 0o777).toBe(0o700);
  expect(statSync(join(state, "engines", name)).mode & 0o777).toBe(0o600);
});

test("what cannot be read hides nothing else, and is written anew", () => {
  const state = makeState();
  noteEngine(state, docker);
  const [name = ""] = readdirSync(join(state, "engines"));
  noteEngine(state, own);
  // As a machine that lost its power leaves it.
  writeFileSync(join(state, "engines", name), "");
  expect(notedEngines(state)).toEqual([own]);
  noteEngine(state, docker);
  expect(sorted(state)).toEqual([docker, own].map(keyOf).sort());
});
