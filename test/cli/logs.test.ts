import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import type { World } from "../world.ts";
import { expectNothingLeft, sessionWorld, startDetached } from "./terminal/remains.ts";

async function untilEnded(world: World): Promise<void> {
  await eventually(async () => expect((await world.podbot(["ps"])).stdout).toContain("ended"));
}

/** A reader in a process of its own. */
function reader(world: World, ...words: string[]) {
  const child = world.spawn(["logs", ...words], { stdio: ["ignore", "pipe", "inherit"] });
  const said = { text: "" };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    said.text += text;
  });
  return { child, said, ended: once(child, "close") };
}

describe("podbot logs", () => {
  test("shows what was printed, each stream on its own, while it runs and afterwards", async () => {
    const world = sessionWorld();
    const id = startDetached(world, [
      "sh",
      "-c",
      "echo out; echo err >&2; until test -e go; do sleep 0.1; done; echo end",
    ]);
    await eventually(async () =>
      expect(await world.podbot(["logs", id])).toEqual({ status: 0, stdout: "out\n", stderr: "err\n" }),
    );
    world.file("home/project/go");
    await untilEnded(world);
    expect(await world.podbot(["logs", id.slice(0, 5)])).toEqual({ status: 0, stdout: "out\nend\n", stderr: "err\n" });
  });

  test("follows until the end", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "echo first; until test -e go; do sleep 0.1; done; echo last"]);
    const { said, ended } = reader(world, "--follow", id);
    await eventually(() => expect(said.text).toBe("first\n"));
    world.file("home/project/go");
    expect(await ended).toEqual([0, null]);
    expect(said.text).toBe("first\nlast\n");
  });

  test("ends at once with Ctrl-C, without an error and without disturbing the session", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "echo first; while :; do sleep 1; done"]);
    const { child, said, ended } = reader(world, "--follow", id);
    await eventually(() => expect(said.text).toBe("first\n"));
    child.kill("SIGINT");
    expect(await ended).toEqual([0, null]);
    expect((await world.podbot(["exec", id, "echo", "alive"])).stdout).toBe("alive\n");
  });

  test("ends when the reader of its output has left", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "while :; do echo more; sleep 0.1; done"]);
    const { child, said, ended } = reader(world, "--follow", id);
    await eventually(() => expect(said.text).toContain("more\n"));
    child.stdout?.destroy();
    await ended;
  });

  test("makes visible what would act on the reader's terminal", async () => {
    const world = sessionWorld();
    const bytes = "\\033[2J\\033]0;t\\007\\r\\001\\177\\302\\233 \\342\\200\\256abc";
    const id = startDetached(world, ["sh", "-c", `printf 'a${bytes}z\\n'`]);
    await untilEnded(world);
    const { stdout } = await world.podbot(["logs", id]);
    expect(stdout).toBe("a\\x1b[2J\\x1b]0;t\\x07\\x0d\\x01\\x7f\\x9b \\u202eabcz\n");
  });

  test("shows the lines of a terminal as lines, and characters that came in pieces whole", async () => {
    const world = sessionWorld();
    const pieces = ["one\\r", "\\ntwo\\r\\n\\303", "\\244\\342", "\\202\\254\\n", "\\360\\237", "\\230\\200"];
    const script = pieces.map((piece) => `printf '${piece}'; sleep 0.2`).join("; ");
    const id = startDetached(world, ["sh", "-c", script]);
    await untilEnded(world);
    expect((await world.podbot(["logs", id])).stdout).toBe("one\ntwo\nä€\n😀");
  });

  test("keeps back nothing at the end", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "printf 'end\\r'; printf 'cut \\303' >&2"]);
    await untilEnded(world);
    expect(await world.podbot(["logs", id])).toEqual({ status: 0, stdout: "end\\x0d", stderr: "cut \ufffd" });
  });

  test("gives the very bytes as JSON", async () => {
    const world = sessionWorld();
    const script = "printf 'a\\033\\377\\000\\302\\233'; sleep 0.2; printf 'text\\n' >&2";
    const id = startDetached(world, ["sh", "-c", script]);
    await untilEnded(world);
    const { stdout } = await world.podbot(["logs", "--json", id]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    const entries = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const all = (stream: string) =>
      Buffer.concat(
        entries.filter((entry) => entry.stream === stream).map(({ base64 }) => Buffer.from(base64, "base64")),
      );
    expect(all("stdout")).toEqual(Buffer.from("61 1b ff 00 c2 9b".replaceAll(" ", ""), "hex"));
    expect(all("stderr").toString()).toBe("text\n");
    expect(entries.every(({ at, process }) => process === 0 && !Number.isNaN(Date.parse(at)))).toBe(true);
  });

  test("holds what a foreground session prints, as long as that runs", async () => {
    const world = sessionWorld();
    const child = world.spawn(["run", "--agent", "custom", "--", "sh", "-c", "echo seen; cat"], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const ended = once(child, "close");
    await eventually(async () => {
      const id = (await world.podbot(["ps", "-q"])).stdout.trim();
      expect(id).not.toBe("");
      expect((await world.podbot(["logs", id])).stdout).toBe("seen\n");
    });
    child.stdin?.end();
    await ended;
    await expectNothingLeft(world);
  });

  test("says where there is nothing to show", async () => {
    const world = sessionWorld();
    const outcome = await world.podbot(["logs", "abcdefghij"]);
    expect(outcome.stderr).toContain("SESSION_NOT_FOUND");
    expect(outcome.status).toBe(125);
    expect(await world.podbot(["logs"])).toMatchObject({ status: 2 });
  });
});
