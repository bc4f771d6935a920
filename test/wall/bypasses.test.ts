// @module-tag security
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { sessionWorld, startIdle } from "../cli/terminal/remains.ts";
import { newWorld } from "../world.ts";

/** Ways around other sandboxes that no other file tries. docs/security-model.md lists all of them. */
describe("an allowlist that names nothing", () => {
  const empty = 'mode = "allowlist"\ndomains = []\npresets = []\nrules = []\n';

  test.each([
    ["in a file", `[network]\n${empty}`, []],
    ["by a flag", "", ["--network", "allowlist"]],
    ["while the environment names a proxy", `[network]\n${empty}`, ["--env", "https_proxy=http://127.0.0.1:1"]],
  ])("lets nothing out, %s", async (_, text, flags) => {
    const world = newWorld();
    const server = createServer((socket) => socket.end("HTTP/1.0 200 OK\r\n\r\nreached")).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const config = world.file("config.toml", text);
    const script = `for at in http://example.org http://127.0.0.1:${port} http://192.0.2.1:${port}; do
      curl -sS --noproxy '*' --max-time 5 -o said -w '%{http_code}\\n' $at 2>/dev/null; done`;
    const closed = await world.inside(script, "--config", config, ...flags);
    expect(closed.stdout).toBe("403\n000\n000\n");
    const open = await world.inside(`curl -sS http://127.0.0.1:${port}`, "--network", "open");
    expect(open.stdout).toBe("reached");
  });
});

describe("a protected name in other letters", () => {
  test("is another name, which neither git nor Podbot obeys", async () => {
    const world = newWorld().repository();
    const plant = (git: string, own: string) =>
      [
        `mkdir -p ${git}/hooks ${own}`,
        `printf '#!/bin/sh\\ntouch executed\\n' >${git}/hooks/post-commit && chmod +x ${git}/hooks/post-commit`,
        `echo 'network = "open"' >${own}/config.toml`,
      ].join("; ");
    await world.inside(`${plant(".GIT", ".PODBOT")}; ${plant(".Git", ".Podbot")}`);
    await world.inside(plant(".git", ".podbot"));
    expect(existsSync(join(world.project, ".Podbot/config.toml"))).toBe(true);
    world.git("commit", "-q", "--allow-empty", "-m", "next");
    expect(existsSync(join(world.project, "executed"))).toBe(false);
    expect((await world.inside("true")).status).toBe(0);
    world.outside(plant(".git", ".podbot"));
    world.git("commit", "-q", "--allow-empty", "-m", "another");
    expect(existsSync(join(world.project, "executed"))).toBe(true);
    expect((await world.inside("true")).stderr).toContain("config.toml");
  });
});

describe.runIf(process.getuid?.() === 0)("files of a session that runs", () => {
  test("can be read by no other user, whatever the umask", () => {
    const world = sessionWorld();
    const temporary = join(world.directory, "tmp");
    mkdirSync(temporary);
    for (const path of [world.directory, world.home, world.project]) chmodSync(path, 0o755);
    chmodSync(temporary, 0o1777);
    const mask = process.umask(0);
    world.env["TMPDIR"] = temporary;
    startIdle(world, "--env", "SECRET=value");
    process.umask(mask);
    const places = [join(world.home, ".local/state/podbot"), join(world.directory, "run/podbot"), temporary];
    const found = (user: number, what: string, where: readonly string[]) =>
      spawnSync(
        "setpriv",
        [`--reuid=${user}`, `--regid=${user}`, "--clear-groups", "find", ...where, ...what.split(" ")],
        {
          encoding: "utf8",
        },
      ).stdout;
    expect(found(65_534, "-type f -readable", places)).toBe("");
    expect(found(65_534, "-mindepth 1 -writable", places)).toBe("");
    expect(found(0, "-type f", places)).toContain("record");
    const control = world.file("home/project/seen");
    expect(found(65_534, "-type f -readable", [world.project])).toContain(control);
    expect(readFileSync(control, "utf8")).toBe("content\n");
  });
});
