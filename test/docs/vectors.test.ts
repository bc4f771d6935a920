import { copyFileSync, linkSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { newWorld, type World } from "../world.ts";
import { pageAt, rowsBetween } from "./pages.ts";

const loader = "$(ls /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* 2>/dev/null | head -n 1)";

/** Ways around a wrapped `tool`, by the words of the page: whoever gets past prints `reached`. */
const vectors: Readonly<Record<string, string>> = {
  "the absolute path": "~/bin/tool reached",
  "another directory of PATH": "~/second/tool reached",
  "a symbolic link, or a chain of them": "~/links/alias reached; ~/links/chain reached",
  "a hard link beside it or in a directory of PATH": "~/bin/twin reached; ~/second/twin reached",
  "a hard link elsewhere, made before the start": "~/elsewhere/twin reached",
  "a new hard link": "ln ~/bin/tool new && ./new reached; ln /run/podbot/real/tool newer && ./newer reached",
  "a copy of what lies at its path (that is the shim)": "cp ~/bin/tool shim && ./shim reached",
  "a copy of the real program": "cp /run/podbot/real/tool real && ./real reached",
  "`command`, `env`, `exec -a`": "command tool reached; env tool reached; bash -c 'exec -a innocent tool reached'",
  "another PATH": "PATH=~/second:~/bin; tool reached",
  "a copy in a directory that was not on PATH at the start": "PATH=~/off; tool reached",
  "a shell, Python or Node that executes it": [
    "sh -c 'tool reached'",
    'python3 -c \'import subprocess; subprocess.call(["tool", "reached"])\'',
    `${process.execPath} -e 'process.stdout.write(require("child_process").spawnSync("tool", ["reached"]).stdout)'`,
  ].join("; "),
  "the dynamic loader with its path": `${loader} ~/bin/tool reached`,
  "the dynamic loader with the real program": `${loader} /run/podbot/real/tool reached`,
  "git's second copy in `git-core`": '"$(git --exec-path)/git" checkout . && echo reached',
  "the real program in `/run/podbot/real`": "/run/podbot/real/tool reached",
};

const rules = ["false", "script or `@git`"] as const;

function toolWorld(): World {
  const world = newWorld().repository();
  const place = (path: string) => {
    mkdirSync(dirname(join(world.home, path)), { recursive: true });
    return join(world.home, path);
  };
  const tool = place("bin/tool");
  for (const copy of [tool, place("second/tool"), place("off/tool")]) copyFileSync("/bin/echo", copy);
  for (const link of ["bin/twin", "second/twin", "elsewhere/twin"]) linkSync(tool, place(link));
  world.link("home/links/alias", tool);
  world.link("home/links/chain", "alias");
  world.file("home/guard.sh", "#!/bin/sh\nexit 3\n", 0o755);
  world.env["PATH"] = `${world.home}/bin:${world.home}/second:${world.env["PATH"]}`;
  return world;
}

/** What came of each way: the numbers of those that got past. */
function attackScript(): string {
  const attempts = Object.values(vectors).map((script, at) => `( ${script} ) 2>/dev/null | sed 's/^/${at} /'`);
  return attempts.join("\n");
}

function stateOf(stdout: string, at: number): string {
  return stdout.split("\n").includes(`${at} reached`) ? "deterrence only" : "blocked";
}

describe("the ways around a wrapped command are as docs/security-model.md says", () => {
  const rows = rowsBetween(pageAt("docs/security-model.md"), "vectors", "end of vectors");

  test("and it speaks of all of them", () => {
    expect(rows.map(([, way]) => way)).toEqual(Object.keys(vectors));
  });

  test.each([
    [rules[0], ["--cmd", "tool=false,git=false"]],
    [rules[1], ["--cmd", "tool=~/guard.sh"]],
  ])("with %s", async (rule, flags) => {
    const { stdout } = await toolWorld().podbot(["sandbox", ...flags, "--", "bash", "-c", attackScript()]);
    const states = Object.keys(vectors).map((_, at) => stateOf(stdout, at));
    expect(states).toEqual(rows.map((cells) => cells[2 + rules.indexOf(rule)]));
  });

  test("and without a wall all of them lead to the tool, but for those that need its corner", () => {
    const { stdout } = toolWorld().outside(`bash -c '${attackScript().replaceAll("'", "'\\''")}'`);
    const inCorner = Object.values(vectors).map(
      (script) => script.startsWith("/run/") || / \/run\/\S+ reached/.test(script),
    );
    for (const [at, way] of Object.keys(vectors).entries()) {
      if (!inCorner[at] && way !== "a copy of the real program")
        expect(stateOf(stdout, at), way).toBe("deterrence only");
    }
  });
});

test("every form of git that docs/policy.md calls blocked is", async () => {
  const rows = rowsBetween(pageAt("docs/policy.md"), "blocked forms", "end of blocked forms");
  const forms = rows.flatMap(([cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, form]) => form));
  const script = forms.map((form) => `( ${form} ) >/dev/null 2>&1 </dev/null; echo $?`).join("\n");
  const { stdout } = await newWorld().repository().inside(script);
  const statuses = stdout.trim().split("\n");
  expect(forms.map((form, at) => `${form}: ${statuses[at]}`)).toEqual(forms.map((form) => `${form}: 126`));
});
