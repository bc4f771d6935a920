import { describe, expect, test } from "vitest";
import { encodeEntry } from "../../src/credentials/tar-header.ts";
import { EngineError } from "../../src/errors.ts";
import { buildTrouble } from "../../src/image/failure.ts";
import { firstFile, installedVersions } from "../../src/image/software.ts";
import { type BuildStep, makeStepReader } from "../../src/image/steps.ts";
import { demoAgent } from "./demo.ts";

function read(...pieces: string[]) {
  const steps: BuildStep[] = [];
  const reader = makeStepReader([demoAgent("demo")], (step) => steps.push(step));
  for (const piece of pieces) reader.hear(piece);
  return { reader, steps };
}

const install = "RUN sh /usr/local/lib/podbot/install";

describe("what an engine says of its steps", () => {
  test("is understood of Podman", () => {
    const { steps } = read(
      "STEP 1/5: FROM base\n",
      `STEP 2/5: ${install}-packages a b\n--> Using cache 0123\n`,
      `STEP 3/5: ${install}-npm 1 x\nadded\n`,
      `STEP 4/5: ${install}-agent @x/demo@1.0.0 -- demo --version\n`,
      "--> 0123\nSTEP 5/5: RUN update-ca-certificates\n",
    );
    expect(steps).toEqual([
      { number: 2, of: 5, title: "Debian packages", cached: true },
      { number: 3, of: 5, title: "npm", cached: false },
      { number: 4, of: 5, title: "The demo 1.0.0", cached: false },
    ]);
  });

  test("is understood of Docker, in whatever pieces", () => {
    const { steps, reader } = read(
      `Step 1/3 : ${install}-pack`,
      "ages a\r\n",
      " ---> Using cache\n ---> 0123\n",
      `Step 2/3 : ${install}-agent @x/demo@1.0.0 -- demo\n ---> Running in 0123\nword`,
    );
    expect(steps).toEqual([{ number: 1, of: 3, title: "Debian packages", cached: true }]);
    expect([reader.current(), reader.lastLines()]).toEqual(["The demo 1.0.0", ["word"]]);
    reader.hear("s\n");
    expect(steps.at(-1)).toEqual({ number: 2, of: 3, title: "The demo 1.0.0", cached: false });
  });

  test("names no agent that it does not know", () => {
    const { steps, reader } = read(`STEP 1/1: ${install}-agent @x/other@1.0.0 -- other\nSTEP 2/2: RUN x\n`);
    expect([steps, reader.current()]).toEqual([[], "RUN x"]);
  });

  test("is kept, but only the last of it", () => {
    const { reader } = read(...Array.from({ length: 40 }, (_, index) => `line ${index}\n\n`));
    expect(reader.lastLines()).toEqual(Array.from({ length: 15 }, (_, index) => `line ${index + 25}`));
    expect(read().reader.current()).toBeNull();
  });
});

describe("a build that failed", () => {
  const trouble = (lines: readonly string[], message: string, step: string | null = "Codex 1") =>
    buildTrouble(new EngineError("IMAGE_BUILD_FAILED", message), { step, lines });

  test("is told with its step and its last words", () => {
    const { message, code, hint, details } = trouble(["one", "two"], "exit status 1");
    expect(message).toBe("The image could not be built: it failed at Codex 1.\n    one\n    two\n    exit status 1");
    expect(code).toBe("IMAGE_BUILD_FAILED");
    expect(hint).toBe("Mend it and build again. What is finished is kept, and the next build goes on from there.");
    expect(details).toEqual({ step: "Codex 1", lines: ["one", "two"], words: "exit status 1" });
    expect(trouble([], "gone", null).message).toBe("The image could not be built: it failed.\n    gone");
  });

  test.each([
    ["npm error code SELF_SIGNED_CERT_IN_CHAIN", "SSL_CERT_FILE"],
    ["curl: (60) SSL certificate problem", "SSL_CERT_FILE"],
    ["npm error code EAI_AGAIN", "HTTPS_PROXY"],
    ["Temporary failure resolving 'x'", "HTTPS_PROXY"],
    ["write: no space left on device", "disk is full"],
    ["npm error code ETARGET", "--agents"],
    ["slirp4netns failed", "--host-network"],
  ])("names a way out of %s", (line, remedy) => {
    expect(trouble([line], "exit status 1").hint).toContain(remedy);
  });
});

describe("the list of packages", () => {
  const status = [
    "Package: git\nStatus: install ok installed\nVersion: 1:2.47\nDescription: x",
    "Package: curl\nStatus: deinstall ok config-files\nVersion: 8",
    "Package: bubblewrap\nStatus: install ok installed\nVersion: 0.12",
    "Package: other\nStatus: install ok installed\nVersion: 1",
    "Package: odd\nStatus: install ok installed",
    "Package: mute\nVersion: 1",
    "",
  ].join("\n\n");

  test("gives the versions of those that are installed", () => {
    const names = ["git", "curl", "bubblewrap", "odd", "mute"];
    expect(Object.entries(installedVersions(status, names))).toEqual([
      ["bubblewrap", "0.12"],
      ["git", "1:2.47"],
    ]);
    expect(Object.keys(installedVersions(status, ["bubblewrap", "git"]))).toEqual(["bubblewrap", "git"]);
  });

  test("is the file of an archive", () => {
    const common = { mode: 0o644, modifiedMs: 0, owner: { uid: 0, gid: 0 } };
    const directory = encodeEntry({ ...common, name: Buffer.from("d"), kind: "directory" });
    const file = encodeEntry({ ...common, name: Buffer.from("d/f"), kind: "file", size: 5 });
    expect(firstFile(Buffer.concat([directory, file, Buffer.from("words"), Buffer.alloc(507)])).toString()).toBe(
      "words",
    );
    const old = Buffer.from(file);
    old.writeUInt8(0, 156);
    expect(firstFile(Buffer.concat([old, Buffer.from("words")])).toString()).toBe("words");
    expect(firstFile(Buffer.concat([directory, Buffer.alloc(3)])).length).toBe(0);
  });
});
