import { describe, expect, test } from "vitest";
import type { Operation, Plan } from "../../../src/plan/plan.ts";
import { octal, type References, renderCommand, renderOptions } from "../../../src/wall/bubblewrap/render.ts";
import { allowlist, openNetwork, planFor } from "../../plan/ordinary.ts";

const filter = new Uint8Array([1, 2, 3]);

/** Names what is mounted by its path and what is copied in by its content. */
const references: References = {
  bind: ({ access, source, target }) => [`<${access} ${source}>`, target],
  copy: ({ source }) => `<copy of ${source}>`,
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

  test("leave a box that has doors alone with them", () => {
    expect(rendered({ network: allowlist })).toEqual(rendered({}));
  });

  test("begin in the directory that is seen inside, and leave out what no session has brought", () => {
    const own: Operation = { kind: "own", part: "clone", target: "/work", access: "rw", why: "" };
    expect(rendered({ directory: "/work", operations: [own] }).slice(-4, -2)).toEqual(["--chdir", "/work"]);
    expect(rendered({ operations: [own] })).toEqual(rendered({}));
  });

  test("hold no link: bubblewrap follows it", () => {
    const hold: Operation = { kind: "hold", target: "/l", identity: "8:1", why: "" };
    expect(rendered({ operations: [hold] })).toEqual(rendered({}));
  });

  test("bring what is to be trusted, before anything is sealed", () => {
    const trust = [{ target: "/t", descriptor: 7 }];
    const added = ["--perms", "0444", "--ro-bind-data", "7", "/t"];
    const made: Operation = { kind: "directory", target: "/d", mode: 0o755, why: "" };
    const sealed: Operation = { kind: "seal", target: "/s", why: "" };
    const words = (...operations: readonly Operation[]) =>
      renderOptions({ ...planFor([]), operations }, filter, references, { late: trust }).slice(10, -4);
    expect(words()).toEqual(added);
    expect(words(made)).toEqual(["--perms", "0755", "--dir", "/d", ...added]);
    expect(words(made, sealed, sealed)).toEqual([
      ...["--perms", "0755", "--dir", "/d", ...added],
      ...["--remount-ro", "/s", "--remount-ro", "/s"],
    ]);
  });

  test.each<[string, Partial<Plan>, string]>([
    ["an open network is the host's", { network: openNetwork }, "--unshare-net"],
    ["nesting leaves user namespaces", { nesting: true }, "--disable-userns"],
  ])("change in one word where %s", (_, more, word) => {
    expect(rendered(more)).toEqual(rendered({}).filter((other) => other !== word));
    expect(rendered({})).toContain(word);
  });

  test.each<[Operation, readonly string[]]>([
    [{ kind: "bind", source: "/a", target: "/b", access: "ro", identity: null, why: "" }, ["<ro /a>", "/b"]],
    [{ kind: "bind", source: "/a", target: "/b", access: "rw", identity: "1:2", why: "" }, ["<rw /a>", "/b"]],
    [
      { kind: "file", target: "/f", content: "text", mode: 0o444, over: true, why: "" },
      ["--perms", "0444", "--ro-bind-data", "<text>", "/f"],
    ],
    [{ kind: "trust", target: "/t", why: "" }, []],
    [{ kind: "tmpfs", target: "/tmp", mode: 0o1777, why: "" }, ["--perms", "1777", "--tmpfs", "/tmp"]],
    [{ kind: "directory", target: "/d", mode: 0o755, why: "" }, ["--perms", "0755", "--dir", "/d"]],
    [
      { kind: "file", target: "/f", content: "text", mode: 0o444, why: "" },
      ["--perms", "0444", "--file", "<text>", "/f"],
    ],
    [
      { kind: "copy", source: "/a", target: "/c", identity: "1:2", why: "" },
      ["--perms", "0600", "--file", "<copy of /a>", "/c"],
    ],
    [{ kind: "inlet", target: "/i", why: "" }, []],
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
  const open = { network: openNetwork };

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
      "with a network of its own needs no more either",
      { network: allowlist },
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

  test("waits where it is told that there will be doors", () => {
    const words = ["/run/podbot/enter", "--isolate", "--doors", "9", "5", "--", "true"];
    expect(renderCommand({ ...planFor([]), network: allowlist }, 5, ["true"], { doors: 9 })).toEqual(words);
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
