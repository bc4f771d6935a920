// @module-tag security
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BoxOptions, type CommandRecord, encodeTable, runInBox } from "./box.ts";
import { buildPrograms, makeRandom, makeScratch, ordinary, sanitized } from "./programs.ts";

const scratch = makeScratch(afterAll);
const bin = join(scratch, "bin");
const [curl, npm, box] = [join(bin, "curl"), join(bin, "npm"), join(bin, "manybox")];
const podbot = "/run/podbot/bin/podbot";

beforeAll(() => {
  buildPrograms();
  mkdirSync(bin);
  for (const path of [curl, npm, box]) writeFileSync(path, "#!/bin/sh\necho untouched\n", { mode: 0o755 });
  writeFileSync(join(scratch, "real"), '#!/bin/sh\necho "real $0 $*"\n', { mode: 0o755 });
  writeFileSync(join(scratch, "wrapper"), 'echo "$PODBOT_CMD|$PODBOT_REAL|$*"\n', { mode: 0o755 });
  writeFileSync(join(scratch, "sandbox.json"), '{"id":"x"}\n');
}, 120_000);

describe.each([ordinary, sanitized])("podbot-shim, $build build", ({ shim }) => {
  const run = (script: string, records: readonly CommandRecord[], more: Partial<BoxOptions> = {}) =>
    runInBox(`PATH=${bin}:$PATH\n${script}`, {
      scratch,
      shim,
      targets: [...new Set(records.map((record) => record.target))],
      table: encodeTable(records),
      ...more,
    });
  const denied: CommandRecord = { target: curl, command: "curl", kind: "deny" };
  const denial = "podbot: curl is blocked here by the owner's policy (commands.curl = false)\n";

  it("denies a command by name, path, link and shell", async () => {
    const script = `curl x; echo $?; ${curl}; echo $?; ln -sf ${curl} ${scratch}/alias; ${scratch}/alias; echo $?; sh -c curl; echo $?`;
    const result = await run(script, [denied]);
    expect(result.stdout).toBe("126\n126\n126\n126\n");
    expect(result.stderr).toBe(denial.repeat(4));
    expect((await runInBox(curl, { scratch })).stdout).toBe("untouched\n");
  });

  it("cannot be removed, replaced or written to", async () => {
    const script = `rm -f ${curl}; mv ${join(scratch, "real")} ${curl}; echo x >${curl}; curl`;
    const result = await run(script, [denied]);
    expect(result.stderr.endsWith(denial)).toBe(true);
    expect(result.status).toBe(126);
  });

  it("runs a script through its interpreter with the arguments unchanged", async () => {
    const script = join(scratch, "wrapper");
    const record = { target: npm, command: "npm", kind: "script", real: "/run/real/npm", script };
    const words = `"a b" "" '$x' -n`;
    const seen = "npm|/run/real/npm|a b  $x -n\n";
    expect((await run(`npm ${words}`, [{ ...record, interpreter: "/bin/sh" }])).stdout).toBe(seen);
    expect((await run(`npm ${words}`, [{ ...record, interpreter: "/bin/sh", argument: "-e" }])).stdout).toBe(seen);
    expect((await run(`npm ${words}`, [record])).stdout).toBe(seen);
    expect((await run("npm", [{ ...record, real: "" }])).stdout).toBe("npm||\n");
  });

  it("keeps a script's stdin, exit status and signals", async () => {
    const script = join(scratch, "status");
    writeFileSync(script, "cat; exit 9\n");
    const record = { target: npm, command: "npm", kind: "script", interpreter: "/bin/sh", script };
    expect(await run("npm", [record], { input: "hello" })).toMatchObject({ status: 9, stdout: "hello" });
    writeFileSync(script, 'trap "echo caught; exit 3" TERM\necho ready\nwhile :; do sleep 0.01; done\n');
    const signalled = `rm -f ${scratch}/out; npm >${scratch}/out & until grep -qs ready ${scratch}/out; do sleep 0.01; done; kill $!; wait $!; echo $?; cat ${scratch}/out`;
    expect((await run(signalled, [record])).stdout).toBe("3\nready\ncaught\n");
  });

  it("says when what stands behind it cannot be executed", async () => {
    const record = { target: npm, command: "npm", kind: "script", script: "/nonexistent" };
    expect(await run("npm", [record])).toMatchObject({
      status: 126,
      stderr: "podbot: cannot execute /nonexistent: No such file or directory\n",
    });
  });

  it("chooses by the name it was called by, and leaves the other names of one program alone", async () => {
    const real = join(scratch, "real");
    const records: CommandRecord[] = [
      { target: box, command: "wget", kind: "deny", real },
      { target: box, command: "nc", kind: "script", real, interpreter: "/bin/sh", script: join(scratch, "wrapper") },
    ];
    const links = ["wget", "nc", "ls2"].map((name) => `ln -sf ${box} ${bin}/${name}`).join(";");
    const result = await run(`${links}; wget x; nc x; ls2 x; manybox x`, records);
    expect(result.stdout).toBe(`nc|${real}|x\nreal ${real} x\n`);
    const blocked = "podbot: wget is blocked here by the owner's policy (commands.wget = false)\n";
    expect(result.stderr).toBe(blocked.repeat(2)); // once by name, and once for the program's own name
  });

  it("recognizes itself after the file that was mounted is gone", async () => {
    const table = join(scratch, "table-for-data");
    writeFileSync(table, encodeTable([denied]));
    const inner = `exec 8<${shim}; exec bwrap --dev-bind / / --tmpfs /run --ro-bind ${table} /run/podbot/commands --perms 0755 --ro-bind-data 8 ${curl} -- ${curl}`;
    expect(await runInBox(inner, { scratch })).toMatchObject({ status: 126, stderr: denial });
  });

  it("answers `podbot check` and explains everything else", async () => {
    const record: CommandRecord = { target: podbot, command: "podbot", kind: "check" };
    const files = { [join(scratch, "sandbox.json")]: "/run/podbot/sandbox.json" };
    const check = (words: string, more: Partial<BoxOptions> = { files }) => run(`${podbot} ${words}`, [record], more);
    expect(await check("check")).toMatchObject({ status: 0, stdout: "inside sandbox\n", stderr: "" });
    expect(await check("check --json")).toMatchObject({ status: 0, stdout: '{"id":"x"}\n', stderr: "" });
    for (const quiet of ["check -q", "check --quiet", "check --json -q"]) {
      expect(await check(quiet)).toMatchObject({ status: 0, stdout: "", stderr: "" });
    }
    for (const other of ["", "run", "check more", "sandbox -- ls", "--check"]) {
      expect(await check(other)).toMatchObject({ status: 125, stdout: "" });
      expect((await check(other)).stderr).toContain("sandbox.nesting = true");
    }
    expect((await check("check --json", {})).status).toBe(125);
  });

  it("refuses without a record, without a table, and with a table that is too large", async () => {
    const other = encodeTable([{ ...denied, target: "/elsewhere" }]);
    expect(await run("curl", [denied], { table: other })).toMatchObject({
      status: 126,
      stderr: `podbot: no rule stands behind ${curl}\n`,
    });
    const damaged = "podbot: missing or damaged table of commands: /run/podbot/commands\n";
    const missing = await runInBox(curl, { scratch, shim, targets: [curl] });
    expect(missing).toMatchObject({ status: 126, stderr: damaged });
    const large = encodeTable(Array(40_000).fill(denied));
    expect(await run("curl", [denied], { table: large })).toMatchObject({ status: 126, stderr: damaged });
  });

  it("refuses damaged tables and survives random ones", async () => {
    const sound = encodeTable([denied, { target: npm, command: "npm", kind: "git", real: join(scratch, "real") }]);
    const random = makeRandom(2);
    const broken = [
      Buffer.alloc(0),
      sound.subarray(0, -1),
      Buffer.concat([sound, Buffer.from("\0")]),
      Buffer.alloc(6),
      Buffer.alloc(7),
      encodeTable([{ ...denied, kind: "allow" }]),
      encodeTable([{ ...denied, target: "curl" }]),
      encodeTable([{ ...denied, kind: "git" }]),
      encodeTable([{ ...denied, kind: "script" }]),
      encodeTable([{ ...denied, real: "relative" }]),
    ];
    const mutated = Array.from({ length: 100 }, () => {
      const bytes = Buffer.from(sound.subarray(0, random(4) === 0 ? random(sound.length) : sound.length));
      for (let i = random(3); i >= 0 && bytes.length > 0; i--) bytes[random(bytes.length)] = random(2) * random(256);
      return bytes;
    });
    [...broken, ...mutated].forEach((bytes, i) => {
      writeFileSync(join(scratch, `table-${i}`), bytes);
    });
    const count = broken.length + mutated.length;
    const script = `exec 2>/dev/null; i=0; while [ $i -lt ${count} ]; do cp ${scratch}/table-$i /run/podbot/commands; curl; echo $?; i=$((i+1)); done`;
    const result = await runInBox(`mkdir -p /run/podbot; PATH=${bin}:$PATH; ${script}`, {
      scratch,
      shim,
      targets: [curl],
    });
    const statuses = result.stdout.trim().split("\n").map(Number);
    expect(statuses).toEqual(Array(count).fill(126));
  });
});
