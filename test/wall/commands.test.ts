// @module-tag security
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newWorld, program, showProgram, type World } from "../world.ts";

/** A tool of the world's own on PATH: says its name and what it was given. */
function tool(world: World, path = "home/bin/tool", text = "real"): string {
  const file = world.file(path, `#!/bin/sh\necho "${text} $*"\n`, 0o755);
  world.env["PATH"] = `${join(file, "..")}:${world.env["PATH"]}`;
  return file;
}

const blocked = "podbot: tool is blocked here by the owner's policy (commands.tool = false)\n";

describe("a blocked command", () => {
  test("says so and ends with 126, by whichever name it is reached", async () => {
    const world = newWorld();
    const file = tool(world);
    world.link("home/other/alias", file);
    world.link("home/bin/chained", join(world.home, "other/alias"));
    tool(world, "home/second/tool", "second");
    const vectors: Record<string, string> = {
      "by name": "tool",
      "by absolute path": file,
      "in another directory of PATH": join(world.home, "second/tool"),
      "through a link": join(world.home, "other/alias"),
      "through a chain of links": "chained",
      "by command": "command tool",
      "by env": "env tool",
      "by exec": "exec tool",
      "with another name": "bash -c 'exec -a innocent tool'",
      "with another PATH": `PATH=${join(world.home, "bin")} tool`,
      "from a shell": "sh -c tool",
      "from python": `python3 -c 'import subprocess,sys; sys.exit(subprocess.call(["tool"]))'`,
    };
    for (const [how, script] of Object.entries(vectors)) {
      const { status, stdout, stderr } = await world.inside(script, "--cmd", "tool=false");
      expect({ how, status, stdout, stderr }).toEqual({ how, status: 126, stdout: "", stderr: blocked });
    }
    expect(world.outside("tool x").stdout).toBe("second x\n");
  });

  test("is its stand-in when it is copied", async () => {
    const world = newWorld();
    tool(world);
    const { stdout, stderr } = await world.inside("cp $(command -v tool) mine; ./mine", "--cmd", "tool=false");
    expect(stdout).toBe("");
    expect(stderr).toContain("podbot");
  });

  test("cannot be unblocked: its stand-in can be neither removed nor replaced nor changed", async () => {
    const world = newWorld();
    const file = tool(world, "home/project/bin/tool");
    const { stdout } = await world.inside(
      `rm -f ${file}; mv ${file} x; echo '#!/bin/sh' > ${file}; chmod -x ${file}; truncate -s0 ${file}; tool`,
      "--cmd",
      "tool=false",
    );
    expect(stdout).toBe("");
    expect(readFileSync(file, "utf8")).toContain("real");
  });

  test("may be missing: then there is nothing to do", async () => {
    const world = newWorld();
    const { status, stderr } = await world.inside("true", "--cmd", "no-such-tool=false");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("may be one name of a program with several, which keeps the others", async () => {
    const world = newWorld();
    const file = world.file("home/bin/multi", '#!/bin/sh\necho "multi ${0##*/}"\n', 0o755);
    world.link("home/bin/one", file);
    world.link("home/bin/two", file);
    world.env["PATH"] = `${join(world.home, "bin")}:${world.env["PATH"]}`;
    expect((await world.inside("one", "--cmd", "one=false")).status).toBe(126);
    expect((await world.inside("two", "--cmd", "one=false")).stdout).toContain("multi");
  });

  test("may be the shell itself", async () => {
    const world = newWorld();
    const { status } = await world.podbot(["sandbox", "--cmd", "sh=false", "--", "bash", "-c", "sh -c 'echo no'"]);
    expect(status).toBe(126);
  });
});

describe("a replaced command", () => {
  const wrapper = `#!/bin/sh
case "$1" in publish) echo "no publishing" >&2; exit 3 ;; esac
echo "$PODBOT_CMD: $PODBOT_REAL"
exec "$PODBOT_REAL" "$@"
`;

  test("runs the script, which has the real one", async () => {
    const world = newWorld();
    tool(world);
    world.file("home/wrapper.sh", wrapper, 0o755);
    const flags = ["--cmd", "tool=~/wrapper.sh"];
    const { stdout } = await world.inside("tool 'a b' c", ...flags);
    expect(stdout).toBe("tool: /run/podbot/real/tool\nreal a b c\n");
    const refused = await world.inside("tool publish", ...flags);
    expect(refused).toEqual({ status: 3, stdout: "", stderr: "no publishing\n" });
    expect(
      (await world.inside("echo piped | tool", "--cmd", `tool=${world.file("home/cat.sh", "cat\n")}`)).stdout,
    ).toBe("piped\n");
  });

  test("keeps its script, even where the workspace is writable", async () => {
    const world = newWorld();
    tool(world);
    const script = world.file("home/project/wrapper.sh", wrapper, 0o755);
    const flags = ["--cmd", "tool=wrapper.sh"];
    expect(
      (await world.inside("echo 'echo evil' > wrapper.sh || mv wrapper.sh w || rm -f wrapper.sh", ...flags)).status,
    ).not.toBe(0);
    expect(readFileSync(script, "utf8")).toBe(wrapper);
  });

  test("works for a Node program that finds its parts by relative paths, as npm does", async () => {
    const world = newWorld();
    world.file("home/lib/pkg/package.json", '{"type":"commonjs"}');
    world.file("home/lib/pkg/lib/part.js", "module.exports = 'part'");
    world.file(
      "home/lib/pkg/bin/cli.js",
      `#!${process.execPath}\nconsole.log(require("../lib/part.js"), process.argv[2])\n`,
      0o755,
    );
    world.link("home/bin/tool", "../lib/pkg/bin/cli.js");
    world.env["PATH"] = `${join(world.home, "bin")}:${world.env["PATH"]}`;
    world.file("home/wrapper.sh", wrapper, 0o755);
    expect((await world.inside("tool x", "--cmd", "tool=~/wrapper.sh")).stdout).toContain("part x\n");
  });

  test("keeps its own interpreter even where that is wrapped too", async () => {
    const world = newWorld();
    tool(world);
    world.file("home/wrapper.sh", "#!/bin/bash\necho wrapped\n", 0o755);
    const { stdout } = await world.inside("tool", "--cmd", "tool=~/wrapper.sh,bash=false");
    expect(stdout).toBe("wrapped\n");
  });

  test.each([
    ["missing", "~/none.sh", "is missing"],
    ["a directory", "~/.cache", "is not a file"],
  ])("is refused where the script is %s", async (_, script, why) => {
    const world = newWorld();
    const { status, stderr } = await world.inside("true", "--cmd", `tool=${script}`);
    expect(status).toBe(2);
    expect(stderr).toContain(why);
  });
});

describe("Podbot's corner", () => {
  test("can be neither listed nor changed nor moved", async () => {
    const world = newWorld();
    const script = [
      "ls /run/podbot/real /run/podbot/wrappers",
      "rm -f /run/podbot/commands",
      "echo > /run/podbot/commands",
      "mv /run/podbot /run/p",
      "chmod 777 /run/podbot",
      "rm -f /run/podbot/bin/podbot",
    ];
    for (const attempt of script) expect((await world.inside(attempt)).status, attempt).not.toBe(0);
  });
});

describe("podbot check", () => {
  test("inside is answered without Node", async () => {
    const world = newWorld();
    const { stdout, status } = await world.inside(
      "PATH=/run/podbot/bin podbot check; podbot check --json; podbot check -q",
      "--cmd",
      "node=false",
    );
    expect(status).toBe(0);
    expect(stdout).toBe('inside sandbox\n{"inside":true,"wall":"bubblewrap","root":"host","network":"allowlist"}\n');
    const { stdout: said } = await world.inside(`${process.execPath} ${program} check`, ...showProgram);
    expect(said).toBe("inside sandbox\n");
  });

  test("outside says so, and cannot be fooled by what a user can write", async () => {
    const world = newWorld();
    const { status, stdout } = await world.podbot(["check"]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "outside sandbox\n" });
    expect((await world.podbot(["check", "--json"])).stdout).toBe('{"inside":false}\n');
    expect((await world.podbot(["check", "--quiet"])).stdout).toBe("");
  });
});

describe("a sandbox in a sandbox", () => {
  test("is refused with the reason, unless nesting is on, and then narrows only", async () => {
    const world = newWorld();
    const podbot = `${process.execPath} ${program}`;
    const refused = await world.inside(`${podbot} sandbox -- true`, ...showProgram);
    expect(refused.status).toBe(125);
    expect(refused.stderr).toContain("already the inside of a Podbot sandbox");
    world.file("home/.config/podbot/config.toml", "[sandbox]\nnesting = true\n");
    world.file("home/.ssh/key", "key\n");
    const nested = await world.inside(
      `${podbot} sandbox --quiet -- sh -c 'echo in > nested.txt; cat ~/.ssh/key; echo x > ~/y; cat nested.txt'`,
      "--quiet",
      ...showProgram,
    );
    if (process.getuid?.() === 0) return expect(nested.stderr).toContain("run the outer one as an ordinary user");
    expect(nested.stdout).toBe("in\n");
    expect(existsSync(join(world.home, "y"))).toBe(false);
  });
});
