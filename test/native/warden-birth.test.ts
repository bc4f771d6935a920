// @module-tag security
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { asRoot, buildPrograms, environment, makeRandom, makeScratch, ordinary, sanitized } from "./programs.ts";
import { answerEnosys } from "./seccomp.ts";
import { type Birth, birthOf, isAlive, Keeper, sized, socketPathIn, Warden, words } from "./warden.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

const { errno } = constants;
const sh = (script: string) => ["sh", "-c", script];
function identityOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** Hears everything that is said at a socket, to its end. */
async function listen(): Promise<{ path: string; heard: Buffer[]; isOver: () => boolean }> {
  const path = socketPathIn(scratch);
  const heard: Buffer[] = [];
  let ended = 0;
  const server = createServer((socket) => {
    const at = heard.push(Buffer.alloc(0)) - 1;
    socket.on("error", () => {});
    socket.on("close", () => {
      ended++;
    });
    socket.on("data", (bytes) => {
      heard[at] = Buffer.concat([heard[at] ?? Buffer.alloc(0), bytes]);
    });
  });
  server.listen(path);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { path, heard, isOver: () => ended > 0 && ended === heard.length };
}

const bindScript = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])";

/** A bind in a mount namespace of the warden's own. */
type Bound = readonly [source: string, target: string, access: "ro" | "rw"];

/** Starts what follows in a mount namespace with these mounts, made in order. */
function among(bounds: readonly Bound[], then = ""): readonly string[] {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = bounds.flatMap(([source, target, access]) => [
    `mount -n -c --bind ${quote(source)} ${quote(target)}`,
    ...(access === "ro" ? [`mount -n -c -o remount,bind,ro ${quote(target)}`] : []),
  ]);
  const script = ["set -e", ...lines, then, 'exec "$@"'].join("\n");
  return ["unshare", ...asRoot, "--mount", "--propagation", "private", "sh", "-c", script, "sh"];
}

/** What a warden must find of some mounts, if they are all as they should be. */
const meant = (bounds: readonly Bound[]) =>
  bounds.flatMap(([source, target, access]) => [target, identityOf(source), access]);

/** A mount of this machine as a warden without mounts of its own finds it. */
function mounted(path: string): readonly string[] {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const options = lines.map((line) => line.split(" ")).findLast((line) => line[4] === path)?.[5] ?? "";
  return [path, identityOf(path), options.slice(0, 2)];
}

const greeting = (mark: "1" | "!", token: Buffer) => Buffer.concat([Buffer.from(`podbot\0${mark}`), token]);

describe.each([ordinary, sanitized])("podbot-warden with a birth, $build build", (programs) => {
  function fileOf(bytes: Buffer): string {
    const path = join(mkdtempSync(join(scratch, "birth-")), "birth");
    writeFileSync(path, bytes, { mode: 0o600 });
    return path;
  }

  /** A warden whose keeper listens, with what its birth says. It reads nothing from descriptor 0. */
  async function start(birth: Birth = {}, bounds: readonly Bound[] = []) {
    const keeper = new Keeper(socketPathIn(scratch));
    await keeper.listen();
    const file = fileOf(birthOf(keeper.token, birth));
    const [first = "", ...more] = [...(bounds.length === 0 ? [] : among(bounds)), programs.warden, keeper.path, file];
    const warden = new Warden(first, more, Buffer.alloc(0));
    onTestFinished(async () => {
      if (isAlive(warden.pid)) process.kill(warden.pid, "SIGKILL");
      await keeper.close();
    });
    return { keeper, warden, file };
  }

  /** What a warden says that is given some file, and how it ends. */
  async function complaintOf(file: string, token: Buffer, before: readonly string[] = []) {
    const { path, heard, isOver } = await listen();
    const [first = "", ...more] = [...before, programs.warden, path, file];
    const warden = new Warden(first, more, Buffer.alloc(0));
    const { status, complaints } = await warden.ended();
    for (let waited = 0; !isOver() && waited < 2_000; waited += 10) await sleep(10);
    const said = heard.map((bytes) => bytes.subarray(40).toString());
    const isKnown = heard.every((bytes) => bytes.subarray(0, 40).equals(greeting("!", token)));
    return { status, complaints, said, isKnown };
  }

  it("says the hello with the token of its birth, and takes orders", async () => {
    const { keeper, warden } = await start();
    expect(await keeper.run(["echo", "hello"])).toMatchObject({ end: [0, 0], output: Buffer.from("hello\n") });
    expect(keeper.strangers).toBe(0);
    expect(await warden.end()).toMatchObject({ status: 143, complaints: "" });
  });

  it("has its environment from there, besides that of the image", async () => {
    const { keeper } = await start({ env: ["A=1", "EMPTY=", "B=x=y", "LANG=C.UTF-8", "A=2"] });
    const { output } = await keeper.run(sh('echo "$A|${EMPTY-unset}|$B|$LANG|${PATH:+path}"'));
    expect(output.toString()).toBe("2||x=y|C.UTF-8|path\n");
  });

  it("installs the filter, for all that it starts", async () => {
    const call = "import ctypes; l=ctypes.CDLL(None,use_errno=True); print(l.syscall(444,0,0,1), ctypes.get_errno())";
    const probe = ["python3", "-c", call];
    const denied = await start({ filter: answerEnosys("landlock_create_ruleset") });
    const [, error] = (await denied.keeper.run(probe)).output.toString().trim().split(" ");
    expect(Number(error)).toBe(errno.ENOSYS);
    const status = (await denied.keeper.run(sh("cat /proc/self/status"))).output.toString();
    expect(status).toMatch(/^Seccomp:\t2$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);

    const free = await start();
    const plain = (await free.keeper.run(sh("cat /proc/self/status"))).output.toString();
    const outside = execFileSync("cat", ["/proc/self/status"], { encoding: "utf8" });
    const filters = (text: string) => Number(/^Seccomp_filters:\t(\d+)$/m.exec(text)?.[1]);
    expect(filters(status)).toBe(filters(outside) + 1);
    expect(filters(plain)).toBe(filters(outside));
    const another = (await free.keeper.run(probe)).output.toString().trim().split(" ");
    // Where the kernel has no Landlock it says ENOSYS by itself, and this call proves nothing.
    if (kernelHasLandlock()) expect(Number(another[1])).not.toBe(errno.ENOSYS);
  });

  describe("looks whether its mounts are those that were meant:", () => {
    const token = Buffer.alloc(32, 5);

    /** A directory with things to mount (a, b: directories; f: a file), and places to mount them at. */
    function site(names: readonly string[] = ["here", "there"]) {
      const root = mkdtempSync(join(scratch, "mount-"));
      for (const name of ["a", "b", "at", ...names.map((name) => `at/${name}`)]) mkdirSync(join(root, name));
      for (const name of ["f", "at/file"]) writeFileSync(join(root, name), "");
      return { root, at: (name: string) => join(root, "at", name), of: (name: string) => join(root, name) };
    }

    async function refusalOf(bounds: readonly Bound[], mounts: readonly string[], then = "") {
      const file = fileOf(birthOf(token, { mounts, env: ["A=1"] }));
      return await complaintOf(file, token, among(bounds, then));
    }

    it("directories and files, for reading and for writing", async () => {
      const { at, of } = site();
      const bounds: readonly Bound[] = [
        [of("a"), at("here"), "rw"],
        [of("b"), at("there"), "ro"],
        [of("f"), at("file"), "ro"],
      ];
      const { keeper } = await start({ mounts: meant(bounds) }, bounds);
      const found = await keeper.run(sh(`touch ${at("here")}/new && ! touch ${at("there")}/new`));
      expect(found).toMatchObject({ end: [0, 0] });
    });

    const odd = ["a b", "a\tb", "a\nb", "a\\b", "\\040", "\\", "a,src=b", "'\"", "#", "é", "\u0001", "x".repeat(255)];
    it("whatever they are called", async () => {
      const { at, of } = site(odd);
      const bounds = odd.map((name, index): Bound => [of("a"), at(name), index % 2 === 0 ? "ro" : "rw"]);
      const { keeper } = await start({ mounts: meant(bounds) }, bounds);
      expect(await keeper.run(["true"])).toMatchObject({ end: [0, 0] });
    });

    it.each(odd)("and each of them is refused where it is none: %j", async (name) => {
      const { at, of } = site(odd);
      const bounds = odd.filter((other) => other !== name).map((other): Bound => [of("a"), at(other), "ro"]);
      const mounts = [at(name), identityOf(at(name)), "ro"];
      expect(await refusalOf(bounds, mounts)).toMatchObject({ status: 125, said: [`mount ${at(name)}`] });
    });

    type Site = ReturnType<typeof site>;
    type Case = (site: Site) => readonly [bounds: readonly Bound[], mounts: readonly string[]];
    const oneAt =
      (name: string, access: "ro" | "rw"): ((site: Site) => readonly Bound[]) =>
      ({ at, of }) => [[of("a"), at(name), access]];
    const expecting =
      (bounds: (site: Site) => readonly Bound[], mounts: (site: Site) => readonly string[]): Case =>
      (where) => [bounds(where), mounts(where)];
    const stacked = ({ at, of }: Site): readonly Bound[] => [
      [of("a"), at("here"), "ro"],
      [of("b"), at("here"), "rw"],
    ];

    const wrong: readonly (readonly [string, Case])[] = [
      ["is another", expecting(oneAt("here", "ro"), ({ at, of }) => [at("here"), identityOf(of("b")), "ro"])],
      [
        "is what lay there before",
        expecting(oneAt("here", "ro"), ({ at }) => [at("here"), identityOf(at("here")), "ro"]),
      ],
      ["is missing", expecting(oneAt("here", "ro"), ({ at, of }) => [at("missing"), identityOf(of("a")), "ro"])],
      [
        "is the right one and no mount",
        expecting(oneAt("here", "ro"), ({ at }) => [at("there"), identityOf(at("there")), "ro"]),
      ],
      [
        "is the right one in a mount",
        expecting(
          ({ root, at }) => [[root, at("here"), "rw"]],
          ({ at, of }) => [`${at("here")}/a`, identityOf(of("a")), "rw"],
        ),
      ],
      ["can be written", expecting(oneAt("here", "rw"), ({ at, of }) => [at("here"), identityOf(of("a")), "ro"])],
      ["cannot be written", expecting(oneAt("here", "ro"), ({ at, of }) => [at("here"), identityOf(of("a")), "rw"])],
      ["is not named", expecting(oneAt("here", "ro"), ({ at }) => [at("here"), "", "ro"])],
      [
        "is neither to be read nor written",
        expecting(oneAt("here", "ro"), ({ at, of }) => [at("here"), identityOf(of("a")), ""]),
      ],
      ["has a name that goes on", expecting(oneAt("here", "ro"), ({ at }) => [at("he"), identityOf(at("here")), "ro"])],
      ["is a link to it", expecting(oneAt("here", "ro"), ({ at, of }) => [at("link"), identityOf(of("a")), "ro"])],
      [
        "is said otherwise",
        expecting(oneAt("here", "ro"), ({ at, of }) => [`${at("here")}/`, identityOf(of("a")), "ro"]),
      ],
      ["lies below another: the lower", expecting(stacked, ({ at, of }) => [at("here"), identityOf(of("a")), "ro"])],
      [
        "lies below another: by its access",
        expecting(stacked, ({ at, of }) => [at("here"), identityOf(of("b")), "ro"]),
      ],
      [
        "lies below another: by its identity",
        expecting(stacked, ({ at, of }) => [at("here"), identityOf(of("a")), "rw"]),
      ],
      [
        "is right, and the next is not",
        expecting(oneAt("here", "ro"), ({ at, of }) => [
          ...[at("here"), identityOf(of("a")), "ro"],
          ...[at("there"), identityOf(at("there")), "rw"],
        ]),
      ],
    ];
    it.each(wrong)("says which it is and does not call, where one %s", async (_, make) => {
      const where = site();
      symlinkSync(where.at("here"), where.at("link"));
      const [bounds, mounts] = make(where);
      const found = await refusalOf(bounds, mounts);
      expect(found).toMatchObject({ status: 125, said: [`mount ${mounts.at(-3)}`], isKnown: true });
      expect(found.complaints).toContain(`mount ${mounts.at(-3)}`);
    });

    it.each([
      ["has a name that another's begins with", ["he", "here", "here2"], "here"],
      ["has one that others begin", ["he", "here", "here2"], "he"],
    ])("is content where a mount %s", async (_, names, name) => {
      const { at, of } = site(names);
      const bounds = names.map((one): Bound => [of("a"), at(one), one === name ? "ro" : "rw"]);
      const { keeper } = await start({ mounts: [at(name), identityOf(of("a")), "ro"] }, bounds);
      expect(await keeper.run(["true"])).toMatchObject({ end: [0, 0] });
    });

    it("takes of two at the same place the upper, which is what is seen", async () => {
      const where = site();
      const mounts = [where.at("here"), identityOf(where.of("b")), "rw"];
      const { keeper } = await start({ mounts }, stacked(where));
      expect(await keeper.run(["true"])).toMatchObject({ end: [0, 0] });
    });

    it("is not deceived by names that were exchanged and exchanged back", async () => {
      const { root, of } = site();
      const [guarded, decoy, spare] = ["w/guarded", "w/decoy", "w/spare"].map(of) as [string, string, string];
      for (const path of [of("w"), guarded, decoy, of("seen")]) mkdirSync(path);
      const identity = identityOf(guarded);
      const exchange = () => {
        renameSync(guarded, spare);
        renameSync(decoy, guarded);
        renameSync(spare, decoy);
      };
      const bounds: readonly Bound[] = [
        [of("w"), of("seen"), "rw"],
        [guarded, of("seen/guarded"), "ro"],
      ];
      const wait = `touch ${root}/ready; while [ ! -e ${root}/go ]; do sleep 0.02; done`;
      const mounts = [of("seen"), identityOf(of("w")), "rw", of("seen/guarded"), identity, "ro"];
      exchange();
      const found = refusalOf(bounds, mounts, wait);
      while (!existsSync(of("ready"))) await sleep(10);
      // The mount goes along with the directory that it lies on.
      exchange();
      expect(identityOf(guarded)).toBe(identity);
      writeFileSync(of("go"), "");
      expect(await found).toMatchObject({ status: 125, said: [`mount ${of("seen/guarded")}`], isKnown: true });
    });
  });

  it("says so where a path is longer than it can say", async () => {
    const token = Buffer.alloc(32, 5);
    const path = `/${"x".repeat(6_000)}`;
    const { status, said } = await complaintOf(fileOf(birthOf(token, { mounts: [path, "1:1", "ro"] })), token);
    expect({ status, said: said[0]?.length }).toEqual({ status: 125, said: 4_095 });
  });

  const token = Buffer.alloc(32, 9);
  const nothing = sized(Buffer.alloc(0));
  it.each([
    ["a mount without an identity", Buffer.concat([token, nothing, sized(words(["/"])), nothing])],
    ["a mount without an identity", Buffer.concat([token, nothing, sized(Buffer.from("/\x001:1")), nothing])],
    ["a mount without an identity", Buffer.concat([token, nothing, sized(words(["/", "1:1"])), nothing])],
    ["a mount without an identity", Buffer.concat([token, nothing, sized(Buffer.from("/\x001:1\0ro")), nothing])],
    ["a variable without a name", birthOf(token, { env: ["A=1", "=2"] })],
    ["a variable without a name", birthOf(token, { env: ["A"] })],
    ["the last variable has no end", birthOf(token, { env: ["A=1"] }).subarray(0, -1)],
    ["the filter has no such length", birthOf(token, { filter: Buffer.alloc(7) })],
    ["the filter has no such length", birthOf(token, { filter: Buffer.alloc(8 * 4097) })],
    ["the system call filter cannot be installed", birthOf(token, { filter: Buffer.alloc(8, 255) })],
    ["the birth is too short", token],
    ["the birth is too short", Buffer.concat([token, Buffer.from([1, 0, 0, 0])])],
    ["the birth is too short", Buffer.concat([token, Buffer.from([255, 255, 255, 255]), Buffer.alloc(64)])],
  ])("tells its keeper what is wrong: %s", async (what, bytes) => {
    expect(await complaintOf(fileOf(bytes), token)).toMatchObject({ status: 125, said: [what], isKnown: true });
  });

  describe("refuses at once what is no file:", () => {
    const nobody = Buffer.alloc(32);
    it.each([
      ["nothing", () => {}],
      ["a link", (path: string) => symlinkSync(fileOf(birthOf(token)), path)],
      ["a pipe", (path: string) => void execFileSync("mkfifo", [path])],
      ["a directory", (path: string) => mkdirSync(path)],
      ["a socket", (path: string) => void execFileSync("python3", ["-c", bindScript, path])],
      [
        "one that is too large",
        (path: string) => {
          writeFileSync(path, birthOf(token));
          truncateSync(path, 8 * 1024 * 1024 + 1);
        },
      ],
    ])("%s", async (_, make) => {
      const path = join(mkdtempSync(join(scratch, "odd-")), "birth");
      make(path);
      const found = await complaintOf(path, nobody);
      expect(found).toMatchObject({ status: 125, said: ["the birth cannot be read"], isKnown: true });
    });

    it("one that is too short for a token", async () => {
      const found = await complaintOf(fileOf(token.subarray(1)), nobody);
      expect(found).toMatchObject({ status: 125, said: ["the birth is too short"], isKnown: true });
    });
  });

  it("ends with the same words where nobody listens to them", async () => {
    const file = fileOf(birthOf(token, { env: ["A"] }));
    const warden = new Warden(programs.warden, [join(scratch, "nobody.sock"), file], Buffer.alloc(0));
    expect(await warden.ended()).toMatchObject({ status: 125, complaints: expect.stringContaining("without a name") });
  });

  it("takes one file at the most", async () => {
    const warden = new Warden(programs.warden, ["/s", "/b", "/c"], Buffer.alloc(0));
    expect(await warden.ended()).toMatchObject({ status: 125, complaints: expect.stringContaining("usage") });
  });
});

function kernelHasLandlock(): boolean {
  const call = "import ctypes; l=ctypes.CDLL(None,use_errno=True); l.syscall(444,0,0,1); print(ctypes.get_errno())";
  return Number(execFileSync("python3", ["-c", call], { encoding: "utf8" })) !== errno.ENOSYS;
}

describe("a damaged birth, sanitized build,", () => {
  const token = Buffer.from(Array.from({ length: 32 }, (_, at) => at + 1));
  const sound = () =>
    birthOf(token, {
      filter: answerEnosys("close_range"),
      mounts: [...mounted("/"), ...mounted("/proc")],
      env: ["A=1", "LONGER=some value", "B="],
    });

  interface Ending {
    readonly status: number | null;
    readonly signal: string | null;
    readonly stderr: string;
    /** The first words of each connection. */
    readonly heard: readonly Buffer[];
  }

  /** Starts a warden with these bytes, and ends it where it has called. */
  async function tryBirth(bytes: Buffer): Promise<Ending> {
    const directory = mkdtempSync(join(scratch, "damaged-"));
    const file = join(directory, "birth");
    writeFileSync(file, bytes);
    const heard: Buffer[] = [];
    const path = join(directory, "s.sock");
    const child = spawn(sanitized.warden, [path, file], { env: environment, stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (said: Buffer) => {
      stderr += said.toString("latin1");
    });
    const closed = once(child, "close");
    const server = createServer((socket) => {
      const at = heard.push(Buffer.alloc(0)) - 1;
      socket.on("error", () => {});
      socket.on("data", (said) => {
        heard[at] = Buffer.concat([heard[at] ?? Buffer.alloc(0), said]);
        if (heard[at]?.[7] === 0x31) child.kill("SIGTERM");
      });
    });
    server.listen(path);
    // A changed filter may deny what a warden cannot do without.
    const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
    const [status, signal] = (await closed) as [number | null, string | null];
    clearTimeout(late);
    // What was said to its end, also where the end of the process was seen first.
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true });
    return { status, signal, stderr, heard };
  }

  /** Nothing but an orderly end: with the hello and then by our signal, with a complaint, or by the filter. */
  function expectOrderly(bytes: Buffer, { status, signal, stderr, heard }: Ending): void {
    const context = { bytes: bytes.toString("hex"), stderr };
    expect([125, 143, "SIGSYS", "SIGKILL"], JSON.stringify(context)).toContain(status ?? signal);
    expect(stderr).not.toMatch(/Sanitizer|runtime error/);
    const given = bytes.length < 32 ? Buffer.alloc(32) : bytes.subarray(0, 32);
    for (const said of heard) {
      expect(said.subarray(0, 40)).toEqual(greeting(status === 125 ? "!" : "1", given));
      if (status === 143) expect(said).toHaveLength(40);
    }
    if (status === 143) expect(bytes.length).toBeGreaterThanOrEqual(40);
  }

  async function tryAll(all: readonly Buffer[]): Promise<readonly Ending[]> {
    const endings: Ending[] = [];
    await Promise.all(
      [0, 1, 2, 3].map(async (first) => {
        for (let at = first; at < all.length; at += 4) endings[at] = await tryBirth(all[at] as Buffer);
      }),
    );
    for (const [at, ending] of endings.entries()) expectOrderly(all[at] as Buffer, ending);
    return endings;
  }

  it("cut off anywhere, says no hello unless it ends with a variable", async () => {
    const whole = sound();
    const starts = whole.length - words(["A=1", "LONGER=some value", "B="]).length;
    const all = Array.from({ length: whole.length + 1 }, (_, length) => whole.subarray(0, length));
    const endings = await tryAll(all);
    const called = endings.flatMap(({ status }, length) => (status === 143 ? [length] : []));
    expect(called).toEqual([starts, starts + 4, starts + 4 + 18, whole.length]);
  });

  it("changed at random, never crashes nor calls with another token", async () => {
    const random = makeRandom(7);
    const all = Array.from({ length: 300 }, () => mutate(sound(), random));
    const endings = await tryAll(all);
    expect(endings.filter(({ status }) => status === 125).length).toBeGreaterThan(50);
    expect(endings.filter(({ status }) => status === 143).length).toBeGreaterThan(5);
  });

  it("of any bytes at all, never crashes", async () => {
    const anything = fc
      .tuple(fc.constant(token), fc.uint8Array({ maxLength: 80 }))
      .map(([head, tail]) => Buffer.concat([head, tail]));
    await fc.assert(
      fc.asyncProperty(anything, async (bytes) => expectOrderly(bytes, await tryBirth(bytes))),
      { numRuns: 60 },
    );
  });
});

function mutate(original: Buffer, random: (below: number) => number): Buffer {
  let bytes = Buffer.from(original);
  for (let changes = 1 + random(3); changes > 0 && bytes.length > 0; changes--) {
    const at = random(bytes.length);
    const kind = random(5);
    if (kind === 0) bytes[at] = random(256);
    else if (kind === 1) bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
    else if (kind === 2) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random(6))]);
    else if (kind === 3) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(random(bytes.length))]);
    else bytes[at] = [0, 1, 127, 255][random(4)] ?? 0;
  }
  return bytes;
}
