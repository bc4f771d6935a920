import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isDamaged, isSessionId, parseRecord } from "../../src/registry/record.ts";
import { ended, sampleRecord } from "./sessions.ts";

const id = "abcdefgh23";
const github = {
  appId: 1,
  installationId: 2,
  privateKeyPath: "/home/me/key.pem",
  apiUrl: "https://api.github.com",
  repository: "octocat/name",
  permissions: { contents: "write", metadata: "read" },
  token: "file",
} as const;
const engine = { endpoint: "unix:///run/docker.sock", service: null };
const parse = (value: unknown) => parseRecord(JSON.stringify(value), id);

describe("a session's id", () => {
  test.each(["abcdefgh23", "zzzzzzzzzz", "a123456789"])("is %s", (name) => expect(isSessionId(name)).toBe(true));

  test.each([
    "",
    "..",
    "abcdefgh2",
    "abcdefgh234",
    "1bcdefgh23",
    "Abcdefgh23",
    "abcdefgh2/",
    "abcdefgh23\n",
    "a.cdefgh23",
  ])("is not %j", (name) => expect(isSessionId(name)).toBe(false));
});

describe("a record", () => {
  test.each([
    ["that runs", sampleRecord()],
    ["that starts", sampleRecord({ phase: "starting" })],
    ["that waits for its agent", sampleRecord({ phase: "prepared" })],
    ["that has ended", sampleRecord(ended)],
    ["in a container", sampleRecord({ wall: "engine", engine })],
    ["in a container of Podbot's own service", sampleRecord({ engine: { ...engine, service: { runtime: null } } })],
    ["with a token", sampleRecord({ github })],
    ["with a token that is masked", sampleRecord({ github: { ...github, token: "masked" } })],
    ["in one with a runtime", sampleRecord({ engine: { ...engine, service: { runtime: "runsc" } } })],
    ["that has ended before its command ran", sampleRecord({ ...ended, exit: null })],
  ])("is read as it was written: of a session %s", (_, record) => {
    expect(parse(record)).toEqual(record);
  });

  test("keeps nothing that this Podbot does not know", () => {
    const { keeper } = sampleRecord();
    const more = { ...sampleRecord(), more: 1, keeper: { ...keeper, more: 1 } };
    expect(parse(more)).toEqual(sampleRecord());
    const service = { runtime: null };
    expect(parse({ ...more, engine: { ...engine, more: 1, service: { ...service, more: 1 } } })).toEqual(
      sampleRecord({ engine: { ...engine, service } }),
    );
    expect(parse({ ...sampleRecord(ended), exit: { code: 1, killed: true, more: 1 } })).toEqual(
      sampleRecord({ ...ended, exit: { code: 1, killed: true } }),
    );
  });

  test("of a Podbot that knew no engines has none", () => {
    const { engine: _, ...before } = sampleRecord();
    expect(parse(before)).toEqual(sampleRecord({ engine: null }));
  });

  test("of a Podbot that knew no tokens has none", () => {
    const { github: _, ...before } = sampleRecord();
    expect(parse(before)).toEqual(sampleRecord({ github: null }));
  });

  test.each([
    ["no JSON", "{", /not a JSON object/],
    ["a list", "[]", /not a JSON object/],
    ["null", "null", /not a JSON object/],
    ["no version", "{}", /no version/],
    ["another version", '{"version":2}', /version 2; this Podbot reads 1/],
    ["another session's", JSON.stringify(sampleRecord({ id: "bbbbbbbbbb" })), /another session/],
  ])("is damaged: %s", (_, text, why) => {
    expect(parseRecord(text, id)).toEqual({ id, damaged: expect.stringMatching(why) });
  });

  const mark = sampleRecord().keeper;
  test.each([
    ["createdAt", "yesterday"],
    ["createdAt", "2026-01-02"],
    ["createdAt", "2026-13-02T03:04:05.678Z"],
    ["createdAt", 5],
    ["keeper", null],
    ["keeper", { ...mark, pid: 0 }],
    ["keeper", { ...mark, pid: -1 }],
    ["keeper", { ...mark, pid: 1.5 }],
    ["keeper", { ...mark, started: 5 }],
    ["keeper", { ...mark, space: 5 }],
    ["keeper", { ...mark, machine: 5 }],
    ["wall", null],
    ["github", "https://api.github.com"],
    ["github", { ...github, appId: 0 }],
    ["github", { ...github, installationId: "2" }],
    ["github", { ...github, privateKeyPath: "key.pem" }],
    ["github", { ...github, apiUrl: 5 }],
    ["github", { ...github, repository: 5 }],
    ["github", { ...github, repository: null }],
    ["github", { ...github, repository: "hello" }],
    ["github", { ...github, repository: "octocat/hello/world" }],
    ["github", { ...github, permissions: null }],
    ["github", { ...github, permissions: { contents: "admin" } }],
    ["github", { ...github, token: "other" }],
    ["engine", "unix:///run/docker.sock"],
    ["engine", {}],
    ["engine", { ...engine, endpoint: 5 }],
    ["engine", { ...engine, endpoint: "unix:///a\0b" }],
    ["engine", { endpoint: engine.endpoint }],
    ["engine", { ...engine, service: "podman" }],
    ["engine", { ...engine, service: {} }],
    ["engine", { ...engine, service: { runtime: 5 } }],
    ["directory", "run/abcdefgh23"],
    ["directory", "/home/me"],
    ["directory", "/run/../abcdefgh23"],
    ["directory", "/run/x\0/abcdefgh23"],
    ["cwd", "project"],
    ["agent", 5],
    ["command", "sh"],
    ["command", ["sh", 5]],
    ["detached", "yes"],
    ["phase", "over"],
    ["endedAt", 5],
    ["endedAt", undefined],
    ["exit", 5],
    ["exit", { code: "0", killed: false }],
    ["exit", { code: 0, killed: 0 }],
  ])("is damaged where %s is %j", (field, value) => {
    expect(parse({ ...sampleRecord(), [field]: value })).toEqual({
      id,
      damaged: expect.stringContaining(`"${field}"`),
    });
  });

  test.each([
    ["ended without a time", { phase: "ended" }],
    ["not ended, with a time", { endedAt: ended.endedAt }],
    ["not ended, with an exit", { exit: ended.exit }],
  ])("is damaged that contradicts itself: %s", (_, change) => {
    expect(parse({ ...sampleRecord(), ...change })).toEqual({ id, damaged: expect.stringContaining("both") });
  });

  test("is never more than a record or a reason", () => {
    const anything = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .tuple(fc.constantFrom(...Object.keys(sampleRecord())), fc.jsonValue())
        .map(([field, value]) => JSON.stringify({ ...sampleRecord(), [field]: value })),
    );
    fc.assert(
      fc.property(anything, (text) => {
        const record = parseRecord(text, id);
        if (isDamaged(record)) expect(record.damaged).not.toBe("");
        else expect(parse(record)).toEqual(record);
      }),
    );
  });
});
