import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { Plan } from "../../../src/plan/plan.ts";
import { renderEngineScript } from "../../../src/wall/engine/script.ts";
import {
  allowlist,
  type ContainerChange,
  cwd,
  imageRules,
  openNetwork,
  planInImage,
  said,
  unlimited,
} from "../../plan/ordinary.ts";
import { repositoryAt } from "../../plan/tree.ts";

const directory = mkdtempSync(join(tmpdir(), "podbot-engine-script-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** Stands where an engine's command line would, and tells its words. */
for (const name of ["podman", "docker"]) {
  writeFileSync(join(directory, name), `#!/bin/sh\nprintf '%s\\0' ${name} "$@" >${directory}/words\nexit 3\n`, {
    mode: 0o755,
  });
}

/** The words that an engine's command line would get. */
function wordsOf(plan: Plan): readonly string[] {
  const { status, stderr } = spawnSync("bash", {
    input: renderEngineScript(plan),
    env: { PATH: `${directory}:${process.env["PATH"]}`, TMPDIR: directory },
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({ status: 3, stderr: "" });
  return readFileSync(join(directory, "words"), "utf8").split("\0").slice(0, -1);
}

const words = (more: ContainerChange = {}) => wordsOf(planInImage(imageRules("!@all", "@base"), {}, more));
/** The values of an option that is given as two words. */
const given = (all: readonly string[], option: string) =>
  all.flatMap((word, at) => (word === option ? [all[at + 1]] : []));
const docker = { flavour: "docker", rootless: false } as const;

describe("the script of a container, run by bash,", () => {
  test("says that it brings no token, and brings none", () => {
    const plan = planInImage([], {}, { request: { token: true } });
    expect(renderEngineScript(plan)).toMatch(/^# It brings no token, and clones nothing\.$/m);
    expect(wordsOf(plan).join(" ")).not.toContain("/run/secrets");
    expect(renderEngineScript(planInImage([]))).not.toContain("token");
  });

  test("is a command for the engine that was found, around the command of the plan", () => {
    const all = words();
    expect(all.slice(0, 6)).toEqual(["podman", "run", "--rm", "--interactive", "--entrypoint=", "--name"]);
    expect(all.slice(-3)).toEqual(["localhost/dev", "make", "test"]);
    expect(given(all, "--workdir")).toEqual([cwd]);
    expect(given(all, "--network")).toEqual(["none"]);
    expect(words({ engine: docker })[0]).toBe("docker");
    expect(given(all, "--image-volume")).toEqual(["ignore"]);
    expect(words({ engine: docker })).not.toContain("--image-volume");
  });

  test("takes the same powers as the container itself", () => {
    const five = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"];
    const minimal = words();
    expect(given(minimal, "--cap-drop")).toEqual(["ALL"]);
    expect(given(minimal, "--cap-add")).toEqual(five);
    expect(given(minimal, "--security-opt")).toEqual(["no-new-privileges", "label=disable"]);
    expect(given(minimal, "--device")).toEqual([]);
    expect(minimal).not.toContain("--privileged");
    const inner = words({ wishes: { inner: true, keepSelinuxLabels: true } });
    expect(given(inner, "--cap-add")).toEqual([...five, "MKNOD", "SETPCAP", "SYS_ADMIN", "SYS_CHROOT"]);
    expect(given(inner, "--security-opt")).toEqual(["no-new-privileges"]);
    expect(given(inner, "--device")).toEqual(["/dev/fuse"]);
    expect(given(inner, "--userns")).toEqual([]);
    const privileged = words({ wishes: { privileged: true, inner: true } });
    expect(privileged).toContain("--privileged");
    expect(privileged.filter((word) => /^--(cap|security|device|userns)/.test(word))).toEqual([]);
  });

  test("takes the same limits", () => {
    const limits = { ...unlimited, memoryMb: 512, cpus: 1.5, pids: 64 };
    const all = words({ request: { limits } });
    expect(given(all, "--memory")).toEqual(["512m"]);
    expect(given(all, "--memory-swap")).toEqual(["512m"]);
    expect(given(all, "--cpus")).toEqual(["1.5"]);
    expect(given(all, "--pids-limit")).toEqual(["64"]);
    expect(given(all, "--ulimit")).toEqual(["nofile=4096:4096"]);
    expect(words().filter((word) => /^--(memory|cpus|pids)/.test(word))).toEqual([]);
  });

  test("takes the same runtime and the same root", () => {
    expect(given(words({ engine: docker, wishes: { runtime: "runsc" } }), "--runtime")).toEqual(["runsc"]);
    expect(given(words({ wishes: { runtime: "runsc" } }), "--runtime")).toEqual([]);
    const all = words({ wishes: { readOnlyRoot: true } });
    expect(all).toContain("--read-only");
    expect(given(all, "--tmpfs")).toEqual(["/tmp", "/var/tmp", "/run"]);
  });

  test("leaves an open network to the engine", () => {
    expect(words({ request: { network: openNetwork } })).not.toContain("--network");
  });

  test("says where it has no doors", () => {
    const note = /^# .*no doors.*--network none/m;
    const guarded = planInImage([], {}, { request: { network: allowlist } });
    expect(renderEngineScript(guarded)).toMatch(note);
    expect(renderEngineScript(planInImage([]))).not.toMatch(note);
    expect(given(words({ request: { network: allowlist } }), "--network")).toEqual(["none"]);
  });

  test("names variables; values are the plan's own, or those of whoever runs it", () => {
    const variables = [
      { name: "HOME", from: "plan", value: "/root" },
      { name: "GREETING", from: "plan", value: "it's $HOME" },
      { name: "LANG", from: "caller" },
      { name: "TOKEN", from: "secret", secret: "token", optional: false },
    ] as const;
    expect(given(words({ request: { variables } }), "--env")).toEqual([
      "HOME=/root",
      "GREETING=it's $HOME",
      "LANG",
      "TOKEN",
    ]);
  });

  test("mounts what the plan mounts, hides what it hides, and leaves Podbot's corner out", () => {
    const rules = [
      ...imageRules("!@all", "@base"),
      said("flag", "ro docs"),
      said("flag", "exclude keys"),
      said("flag", "exclude .env"),
    ];
    const tree = { [`${cwd}/docs`]: "directory", [`${cwd}/keys`]: "directory", [`${cwd}/.env`]: "file" } as const;
    const mounts = given(wordsOf(planInImage(rules, tree)), "--mount") as string[];
    expect(mounts.map((line) => line.replaceAll(directory, "TMP").replace(/tmp\.\w+/, "*")).sort()).toEqual([
      `type=bind,source=${cwd},target=${cwd}`,
      `type=bind,source=${cwd}/docs,target=${cwd}/docs,readonly`,
      `type=bind,source=TMP/*,target=${cwd}/.env,readonly`,
      `type=bind,source=TMP/*,target=${cwd}/keys,readonly`,
      "type=bind,source=TMP/*,target=/run/secrets,readonly",
    ]);
  });

  test("leaves out what Podbot only holds while it runs", () => {
    const plan = planInImage(imageRules(), { [`${cwd}/.git/config`]: "file" }, { survey: { git: repositoryAt(cwd) } });
    const mounts = given(wordsOf(plan), "--mount").join("\n");
    expect(plan.held.map(({ path }) => path)).toContain(`${cwd}/.git/hooks`);
    expect(mounts).not.toContain(".git/hooks");
    expect(mounts).toContain(`source=${cwd}/.git/config`);
  });

  test("says nothing but what was meant, whatever a path is called", () => {
    const name = fc.stringMatching(/^[ -~\n]{1,12}$/).filter((text) => !/[/]|^\.\.?$/.test(text));
    fc.assert(
      fc.property(name, (text) => {
        const plan = planInImage([]);
        const source = `/data/${text}`;
        const operations = [{ kind: "bind", source, target: source, access: "ro", identity: null, why: "" }] as const;
        const all = wordsOf({ ...plan, operations, command: [text, "-c", text] });
        const [mount] = given(all, "--mount");
        expect(fieldsOf(String(mount))).toEqual(["type=bind", `source=${source}`, `target=${source}`, "readonly"]);
        expect(all.slice(-3)).toEqual([text, "-c", text]);
      }),
      { numRuns: 60 },
    );
  });
});

/** A line of CSV, as engines read it. */
function fieldsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/gs)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "",
  );
}
