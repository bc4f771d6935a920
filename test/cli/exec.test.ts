import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { processesOf, sessionWorld, startDetached, startIdle } from "./terminal/remains.ts";

describe("podbot exec", () => {
  test("joins the caller's streams and ends with the command's status", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    for (const status of [0, 7, 126, 127, 255]) {
      const outcome = await world.podbot(["exec", id, "--", "sh", "-c", `echo out; echo err >&2; exit ${status}`]);
      expect(outcome).toEqual({ status, stdout: "out\n", stderr: "err\n" });
    }
    expect((await world.podbot(["exec", id, "sh", "-c", "kill -TERM $$"])).status).toBe(143);
  });

  test("gives the command the caller's input", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const child = world.spawn(["exec", id, "--", "tr", "a-z", "A-Z"], { stdio: ["pipe", "pipe", "inherit"] });
    let said = "";
    child.stdout?.on("data", (text: Buffer) => {
      said += text;
    });
    child.stdin?.end("loud\n");
    const [status] = await once(child, "close");
    expect({ status, said }).toEqual({ status: 0, said: "LOUD\n" });
  });

  test("ends with 127 and 126 where the command cannot be started", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const missing = await world.podbot(["exec", id, "no-such-program"]);
    expect(missing.stderr).toContain("COMMAND_NOT_FOUND");
    expect(missing.status).toBe(127);
    const directory = await world.podbot(["exec", id, "/etc"]);
    expect(directory.stderr).toContain("COMMAND_NOT_EXECUTABLE");
    expect(directory.status).toBe(126);
    const nowhere = await world.podbot(["exec", "-C", "/nowhere", id, "true"]);
    expect(nowhere.stderr).toContain("EXEC_FAILED");
    expect(nowhere.status).toBe(125);
  });

  test("understands the beginning of an id, if it fits one session only", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    expect((await world.podbot(["exec", id.slice(0, 4), "echo", "found"])).stdout).toBe("found\n");
    // Of as many sessions as there are first letters, and one more, two begin alike; a record is enough for that.
    const twin = id.slice(0, 9) + (id.endsWith("a") ? "b" : "a");
    const record = JSON.stringify(
      { ...JSON.parse(readRecord(world.home, id)), id: twin, phase: "ended", endedAt: "2026-01-01T00:00:00.000Z" },
      null,
      2,
    );
    world.file(`home/.local/state/podbot/sessions/${twin}/record.json`, record, 0o600);
    const outcome = await world.podbot(["exec", id.slice(0, 4), "true"]);
    expect(outcome.stderr).toContain("SESSION_AMBIGUOUS");
    expect(outcome.stderr).toContain(id);
    expect(outcome.stderr).toContain(twin);
    expect(outcome.status).toBe(2);
    expect((await world.podbot(["exec", id, "true"])).status).toBe(0);
  });

  test("names the nearest where no session has the id", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const slip = (id.startsWith("a") ? "b" : "a") + id.slice(1);
    const outcome = await world.podbot(["exec", slip, "true"]);
    expect(outcome.stderr).toContain("SESSION_NOT_FOUND");
    expect(outcome.stderr).toContain(`Did you mean ${id}?`);
    expect(outcome.status).toBe(125);
    expect((await world.podbot(["exec", "zzzzzzzzzz", "true"])).stderr).toContain("`podbot ps` lists");
  });

  test("says of a session that has ended how it did", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "exit 4"]);
    await eventually(async () => expect((await world.podbot(["ps"])).stdout).toContain("ended (4)"));
    const outcome = await world.podbot(["exec", id, "true"]);
    expect(outcome.stderr).toContain("SESSION_ENDED");
    expect(outcome.stderr).toContain("status 4");
    expect(outcome.status).toBe(125);
  });

  test("takes a directory inside, variables and a time", async () => {
    const world = sessionWorld();
    const id = startIdle(world, "--env", "FROM_RUN=one");
    world.env["PASSED"] = "two";
    world.env["HIDDEN"] = "secret";
    const script = 'pwd; echo "$FROM_RUN $PASSED $SET $HIDDEN"';
    const outcome = await world.podbot([
      "exec",
      "-C",
      "/usr",
      "--env",
      "PASSED",
      "--env",
      "SET=three",
      id,
      "--",
      "sh",
      "-c",
      script,
    ]);
    expect(outcome.stdout).toBe("/usr\none two three \n");
    expect((await world.podbot(["exec", id, "pwd"])).stdout).toBe(`${world.project}\n`);
    const late = await world.podbot(["exec", "--timeout", "3s", id, "--", "sh", "-c", "echo begun; sleep 300"]);
    expect(late).toEqual({ status: 124, stdout: "begun\n", stderr: "" });
    await eventually(() => expect(processesOf(world).join("\n")).not.toContain(" sleep 300"));
  });

  test("with --detach has no streams, but waits and returns the status", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const script = "readlink /proc/self/fd/0; cat; sleep 0.3; echo done >it; exit 6";
    const outcome = await world.podbot(["exec", "--detach", id, "--", "sh", "-c", `tty; ${script}`]);
    expect(outcome).toEqual({ status: 6, stdout: "", stderr: "" });
    expect(world.outside("cat it").stdout).toBe("done\n");
  });

  test.each([[[]], [["--detach"]]])("passes signals on, with %j", async (flags) => {
    const world = sessionWorld();
    const id = startIdle(world);
    const script = "trap 'echo yes >got; exit 9' TERM; echo go >started; while :; do sleep 0.1; done";
    const child = world.spawn(["exec", ...flags, id, "--", "sh", "-c", script], { stdio: "ignore" });
    const ended = once(child, "close");
    await eventually(() => expect(world.outside("cat started").stdout).toBe("go\n"));
    child.kill("SIGTERM");
    expect(await ended).toEqual([9, null]);
    expect(world.outside("cat got").stdout).toBe("yes\n");
  });

  test("takes its command with it when it is killed", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const child = world.spawn(["exec", id, "--", "sh", "-c", "trap '' HUP; echo go >started; sleep 300"], {
      stdio: "ignore",
    });
    await eventually(() => expect(world.outside("cat started").stdout).toBe("go\n"));
    child.kill("SIGKILL");
    await eventually(() => expect(processesOf(world).join("\n")).not.toContain(" sleep 300"));
    expect((await world.podbot(["exec", id, "echo", "alive"])).stdout).toBe("alive\n");
  });

  test("does not hold the session up when it is stopped itself", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const child = world.spawn(["exec", id, "--", "sh", "-c", "echo go >started; yes"], { stdio: "ignore" });
    await eventually(() => expect(world.outside("cat started").stdout).toBe("go\n"));
    child.kill("SIGSTOP");
    try {
      // As much as fits between them comes to rest; whoever else asks is answered.
      for (let count = 0; count < 20; count++) {
        expect((await world.podbot(["exec", id, "echo", "alive"])).stdout).toBe("alive\n");
      }
    } finally {
      child.kill("SIGKILL");
    }
    await eventually(() => expect(processesOf(world).join("\n")).not.toContain(" yes "));
  });

  test("twenty at once do not disturb each other", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async (_, number) => {
        const child = world.spawn(["exec", id, "--", "sh", "-c", `cat; exit ${number}`], {
          stdio: ["pipe", "pipe", "inherit"],
        });
        let said = "";
        child.stdout?.on("data", (text: Buffer) => {
          said += text;
        });
        child.stdin?.end(`number ${number}\n`.repeat(2000));
        const [status] = await once(child, "close");
        return { status, said };
      }),
    );
    for (const [number, { status, said }] of outcomes.entries()) {
      expect(status).toBe(number);
      expect(said === `number ${number}\n`.repeat(2000)).toBe(true);
    }
  });

  test("without a command or a session is a mistake of the caller's", async () => {
    const world = sessionWorld();
    expect(await world.podbot(["exec"])).toMatchObject({ status: 2 });
    expect(await world.podbot(["exec", "some"])).toMatchObject({ status: 2 });
  });
});

function readRecord(home: string, id: string): string {
  return readFileSync(join(home, ".local/state/podbot/sessions", id, "record.json"), "utf8");
}
