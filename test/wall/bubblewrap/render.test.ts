import { describe, expect, test } from "vitest";
import type { Operation, Plan } from "../../../src/plan/plan.ts";
import { octal, type References, renderCommand, renderOptions } from "../../../src/wall/bubblewrap/render.ts";
import { planFor } from "../../plan/ordinary.ts";

const filter = new Uint8Array([1, 2, 3]);

/** Names what is mounted by its path and what is copied in by its content. */
const references: References = {
  bind: ({ access, source, target }) => [`<${access} ${source}>`, target],
  data: (bytes) => `<${Buffer.from(bytes).toString("latin1")}>`,
};

function rendered(more: Partial<Plan>): readonly string[] {
  return renderOptions({ ...planFor([]), operations: [], ...more }, filter, references);
}

describe("bubblewrap's options", () => {
  test("for a plan without operations are the wall itself", () => {
    expect(rendered({})).toEqual([
      "--die-with-parent",
      "--unshare-user",
      "--unshare-ipc",
      "--unshare-pid",
      "--unshare-uts",
      "--unshare-cgroup-try",
      "--unshare-net",
      "--disable-userns",
      "--cap-drop",
      "ALL",
      "--chdir",
      "/home/u/project",
      "--seccomp",
      "<\x01\x02\x03>",
    ]);
  });

  test.each<[string, Partial<Plan>, string]>([
    ["an open network is the host's", { network: { mode: "open", origin: "" } }, "--unshare-net"],
    ["nesting leaves user namespaces", { nesting: true }, "--disable-userns"],
  ])("change in one word where %s", (_, more, word) => {
    expect(rendered(more)).toEqual(rendered({}).filter((other) => other !== word));
    expect(rendered({})).toContain(word);
  });

  test.each<[Operation, readonly string[]]>([
    [{ kind: "bind", source: "/a", target: "/b", access: "ro", identity: null, why: "" }, ["<ro /a>", "/b"]],
    [{ kind: "bind", source: "/a", target: "/b", access: "rw", identity: "1:2", why: "" }, ["<rw /a>", "/b"]],
    [{ kind: "tmpfs", target: "/tmp", mode: 0o1777, why: "" }, ["--perms", "1777", "--tmpfs", "/tmp"]],
    [{ kind: "directory", target: "/d", mode: 0o755, why: "" }, ["--perms", "0755", "--dir", "/d"]],
    [
      { kind: "file", target: "/f", content: "text", mode: 0o444, why: "" },
      ["--perms", "0444", "--file", "<text>", "/f"],
    ],
    [{ kind: "mask", target: "/m", why: "" }, ["--perms", "0000", "--ro-bind-data", "<>", "/m"]],
    [{ kind: "link", target: "/l", to: "usr/lib", why: "" }, ["--symlink", "usr/lib", "/l"]],
    [{ kind: "mode", target: "/d", mode: 0o111, why: "" }, ["--chmod", "0111", "/d"]],
    [{ kind: "seal", target: "/s", why: "" }, ["--remount-ro", "/s"]],
    [{ kind: "proc", target: "/proc", why: "" }, ["--proc", "/proc"]],
    [{ kind: "dev", target: "/dev", why: "" }, ["--dev", "/dev"]],
  ])("for %j are %j", (operation, words) => {
    expect(rendered({ operations: [operation] }).slice(10, -4)).toEqual(words);
  });

  test("follow the plan's order", () => {
    const operations: readonly Operation[] = [
      { kind: "tmpfs", target: "/a", mode: 0o755, why: "" },
      { kind: "mask", target: "/a/b", why: "" },
      { kind: "seal", target: "/a", why: "" },
    ];
    const targets = rendered({ operations }).filter((word) => word.startsWith("/a"));
    expect(targets).toEqual(["/a", "/a/b", "/a"]);
  });

  test("say nothing of the command or of any variable", () => {
    const options = rendered({ command: ["secret"], variables: [{ name: "secret", from: "plan", value: "secret" }] });
    expect(options.join(" ")).not.toContain("secret");
  });
});

describe("the command inside", () => {
  const open = { network: { mode: "open", origin: "" } } as const;

  test.each<[string, Partial<Plan>, readonly string[]]>([
    ["without network needs no more", {}, ["/run/podbot/enter", "--isolate", "5", "--", "make", "test"]],
    [
      "with network sets abstract sockets apart",
      open,
      ["/run/podbot/enter", "--isolate-abstract", "5", "--", "make", "test"],
    ],
    [
      "unless the owner accepts that they are in reach",
      { ...open, acceptedGaps: ["other", "abstract-sockets"] },
      ["/run/podbot/enter", "--isolate", "5", "--", "make", "test"],
    ],
    [
      "may look like options",
      { command: ["--", "-x", ""] },
      ["/run/podbot/enter", "--isolate", "5", "--", "--", "-x", ""],
    ],
  ])("%s", (_, more, expected) => {
    expect(renderCommand({ ...planFor([]), ...more }, 5)).toEqual(expected);
  });
});

test.each([
  [0, "0000"],
  [0o7, "0007"],
  [0o444, "0444"],
  [0o755, "0755"],
  [0o1777, "1777"],
])("the mode %i is written %s", (mode, expected) => {
  expect(octal(mode)).toBe(expected);
});
