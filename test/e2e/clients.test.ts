import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveGit } from "../gateway/git-server.ts";
import { allow, auditOf, expectAsked, jsonIn, Town } from "../gateway/stage.ts";
import { newWorld, type World } from "../world.ts";
import { cargoRegistry, debianRepository, npmRegistry, pythonIndex, serveFiles } from "./registries/packages.ts";
import { deno, go, grpc, java, requests, rust } from "./registries/programs.ts";

const town = new Town();
const made = join(town.directory, "made");
beforeAll(async () => {
  await town.http("plain.example.com");
  await town.https("open.example.com");
  await town.https("paths.example.com");
  await town.https("npm.example.com", serveFiles(npmRegistry(join(made, "npm"), "https://npm.example.com")));
  await town.https("python.example.com", serveFiles(pythonIndex(join(made, "python"))));
  const debian = serveFiles(debianRepository(join(made, "debian")));
  await town.https("debian.example.com", debian);
  await town.http("plain-debian.example.com", debian);
  mkdirSync(join(made, "cargo"));
  const { files, repositories } = cargoRegistry(join(made, "cargo"), "https://cargo.example.com");
  const [crates, index] = [serveFiles(files), serveGit(repositories)];
  await town.https("cargo.example.com", (request, response) =>
    (request.url?.startsWith("/index.git/") ? index : crates)(request, response),
  );
  await town.https("grpc.example.com", echoGrpc);
  await town.https("whole-grpc.example.com", echoGrpc);
});
afterAll(() => town[Symbol.asyncDispose]());

function openWorld(network: object): World {
  const world = newWorld();
  world.env["PATH"] = `${dirname(process.execPath)}:${world.env["PATH"]}`;
  allow(world, town, { network: network as never });
  copyFileSync(town.trustFile, join(world.project, "town.pem"));
  return world;
}

const run = (world: World, ...lines: readonly string[]) =>
  world.podbot(["sandbox", "--", "sh", "-c", lines.join("\n")]);

describe("package managers", () => {
  test("npm installs what is allowed, and is told why something is not", async () => {
    const world = openWorld({ rules: [{ host: "npm.example.com", paths: ["/tiny", "/tiny/-/*"], methods: ["GET"] }] });
    const flags = "--no-audit --no-fund --no-update-notifier --fetch-retries=0 --registry https://npm.example.com/";
    const { stdout, stderr } = await run(
      world,
      "export npm_config_userconfig=$PWD/none npm_config_globalconfig=$PWD/nothing",
      `npm install ${flags} tiny >/dev/null && node -p 'require("tiny")'`,
      `npm install ${flags} other >said.txt 2>&1 || grep -c 403 said.txt >/dev/null && echo refused`,
    );
    expect(stdout, stderr).toBe("tiny from npm\nrefused\n");
    await expectAsked(
      world,
      "allowed GET https://npm.example.com/tiny 200",
      "allowed GET https://npm.example.com/tiny/-/tiny-1.0.0.tgz 200",
      "refused GET https://npm.example.com/other 403 (path)",
    );
  });

  test("npm may reach the registry of its owner's settings by the preset, and believes whom its owner believes", async () => {
    const world = openWorld({ presets: ["@npm"] });
    world.env["NODE_EXTRA_CA_CERTS"] = town.trustFile;
    world.file(join(world.home, ".npmrc"), "registry=https://npm.example.com/\n");
    const { stdout, stderr } = await run(
      world,
      "export npm_config_registry=https://npm.example.com/",
      "npm install --no-audit --no-fund --no-update-notifier --fetch-retries=0 tiny >/dev/null",
      `node -p 'require("tiny")'`,
    );
    expect(stdout, stderr).toBe("tiny from npm\n");
    expect(new Set(await auditOf(world))).toEqual(new Set(["allowed tls npm.example.com:443"]));
  });

  test("pip installs a wheel", async () => {
    const world = openWorld({ rules: [{ host: "python.example.com", path: "/**", methods: ["GET"] }] });
    const { stdout, stderr } = await run(
      world,
      "export PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_RETRIES=0",
      "pip='/usr/bin/python3 -m pip install -q --no-cache-dir --target out'",
      "$pip --index-url https://python.example.com/simple/ tiny && PYTHONPATH=out python3 -c 'import tiny; print(tiny.word)'",
      "$pip --index-url https://nobody.example.com/simple/ tiny 2>/dev/null || echo refused",
    );
    expect(stdout, stderr).toBe("tiny from pip\nrefused\n");
    await expectAsked(
      world,
      "allowed GET https://python.example.com/simple/tiny/ 200",
      "allowed GET https://python.example.com/files/tiny-1.0.0-py3-none-any.whl 200",
      "refused GET https://nobody.example.com/simple/tiny/ 403 (host)",
    );
  });

  test("apt updates and gets a package, over TLS and without", async () => {
    const world = openWorld({
      rules: [
        { host: "debian.example.com", path: "/debian/**" },
        { host: "plain-debian.example.com", path: "/debian/**" },
      ],
    });
    world.file(join(world.project, "main.conf"), 'Dir::Etc::main "/dev/null";\nDir::Etc::parts "/dev/null";\n');
    const fetch = (url: string) =>
      [
        "rm -rf apt && mkdir -p apt/lists/partial apt/cache/archives/partial apt/got",
        `echo 'deb [trusted=yes] ${url} /' >apt/sources.list`,
        "$apt update >apt/said 2>&1 || cat apt/said",
        "(cd apt/got && $apt download tiny >said 2>&1 && dpkg-deb --fsys-tarfile tiny_*.deb | tar -xO ./usr/share/tiny/word)",
      ].join("\n");
    const { stdout, stderr } = await run(
      world,
      "export APT_CONFIG=$PWD/main.conf",
      "at=$PWD/apt",
      'apt="apt-get -q -o APT::Sandbox::User= -o Dir::State::lists=$at/lists -o Dir::Cache=$at/cache ' +
        "-o Dir::Etc::sourcelist=$at/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::status=/dev/null " +
        '-o Acquire::Languages=none -o Acquire::Retries=0"',
      fetch("https://debian.example.com/debian"),
      fetch("http://plain-debian.example.com/debian"),
      fetch("https://nobody.example.com/debian"),
    );
    expect(stdout.match(/^tiny from apt$/gm), stdout + stderr).toHaveLength(2);
    expect(stdout).toMatch(/nobody\.example\.com.*403/s);
    const asked = await auditOf(world);
    for (const url of ["https://debian.example.com", "http://plain-debian.example.com"]) {
      expect(asked).toContain(`allowed GET ${url}/debian/Packages 200`);
      expect(asked).toContain(`allowed GET ${url}/debian/tiny_1.0.0_all.deb 200`);
    }
    expect(asked.filter((line) => line.includes("nobody") && !line.startsWith("refused"))).toEqual([]);
  });

  test("cargo fetches its index and a crate, builds it, and is refused another registry", async () => {
    const world = openWorld({ rules: [{ host: "cargo.example.com", paths: ["/index.git/**", "/crates/**"] }] });
    const dependency = (registry: string) => `[package]\nname = "user"\nversion = "0.1.0"\nedition = "2018"\n
[dependencies]\ntiny = { version = "1", registry = "${registry}" }\n`;
    const settings = `[registries]\ntown = { index = "https://cargo.example.com/index.git" }
nobody = { index = "https://nobody.example.com/index.git" }\n[net]\nretry = 0\n`;
    for (const registry of ["town", "nobody"]) {
      world.file(join(world.project, registry, "Cargo.toml"), dependency(registry));
      world.file(join(world.project, registry, "src/main.rs"), 'fn main() { println!("{}", tiny::word()); }\n');
      world.file(join(world.project, registry, ".cargo/config.toml"), settings);
    }
    const { stdout, stderr } = await run(
      world,
      "export CARGO_HOME=$PWD/home",
      "(cd town && /usr/bin/cargo run -q)",
      "(cd nobody && /usr/bin/cargo fetch -q 2>/dev/null || echo refused)",
    );
    expect(stdout, stderr).toBe("tiny from cargo\nrefused\n");
    const asked = await auditOf(world);
    expect(asked).toContain("allowed GET https://cargo.example.com/crates/tiny/1.0.0/download 200");
    expect(asked.filter((line) => line.includes("nobody") && !line.startsWith("refused"))).toEqual([]);
  });
});

describe("programs", () => {
  const network = {
    domains: ["plain.example.com", "open.example.com"],
    rules: [{ host: "paths.example.com", path: "/allowed/**" }],
  };

  test("in Go, whose resolver is its own, speak HTTP/2 to what is allowed", async () => {
    const world = openWorld(network);
    world.file(join(world.project, "main.go"), go);
    const home = join(world.directory, "go");
    const env = { ...world.env, GO111MODULE: "off", GOCACHE: join(home, "cache"), GOPATH: home, GOFLAGS: "" };
    execFileSync("/usr/bin/go", ["build", "-o", "program", "main.go"], { cwd: world.project, env: env as never });
    const { stdout, stderr } = await run(
      world,
      "./program http://plain.example.com/a",
      "SSL_CERT_FILE=town.pem SSL_CERT_DIR=/nowhere ./program https://open.example.com/b",
      "./program https://paths.example.com/allowed/c",
      "GODEBUG=netdns=go ./program https://paths.example.com/allowed/d",
      "GODEBUG=netdns=cgo ./program https://paths.example.com/other",
      "./program https://closed.example.com/e",
    );
    expect(stdout.match(/^\d+ HTTP.*$/gm), stderr).toEqual([
      "200 HTTP/1.1",
      "200 HTTP/2.0",
      "200 HTTP/2.0",
      "200 HTTP/2.0",
      "403 HTTP/2.0",
      "403 HTTP/2.0",
    ]);
    await expectAsked(
      world,
      "allowed GET http://plain.example.com/a 200",
      "allowed tls open.example.com:443",
      "allowed GET https://paths.example.com/allowed/c 200",
      "allowed GET https://paths.example.com/allowed/d 200",
      "refused GET https://paths.example.com/other 403 (path)",
      "refused GET https://closed.example.com/e 403 (host)",
    );
  });

  test("in Java, which has a trust store of its own, get what is allowed", async () => {
    const world = openWorld(network);
    world.file(join(world.project, "Main.java"), java);
    execFileSync("/usr/bin/javac", ["Main.java"], { cwd: world.project, env: world.env as never });
    const { stdout, stderr } = await run(
      world,
      "java='/usr/bin/java -cp . -Xshare:auto Main'",
      ...fourAddresses.map((address) => `$java ${address}`),
      // Without what Podbot says of it, Java believes nobody of the session's.
      "(unset JAVA_TOOL_OPTIONS; $java https://paths.example.com/allowed/d 2>&1) | grep -c 'PKIX path building failed' >/dev/null && echo unknown",
    );
    expect(stdout, stderr).toBe("200 HTTP_1_1\n200 HTTP_2\n403 HTTP_2\n403 HTTP_2\nunknown\n");
    await expectFourAsked(world);
  });

  test("in Deno get what is allowed", async () => {
    const world = openWorld(network);
    world.file(join(world.project, "main.ts"), deno);
    copyFileSync(installDeno(), join(world.project, "deno"));
    const { stdout, stderr } = await run(
      world,
      "export DENO_DIR=$PWD/cache DENO_NO_UPDATE_CHECK=1 NO_COLOR=1",
      "deno='./deno run --no-config --allow-net main.ts'",
      ...fourAddresses.map((address) => `$deno ${address}`),
      "export DENO_TLS_CA_STORE=mozilla; unset DENO_CERT SSL_CERT_FILE NODE_EXTRA_CA_CERTS",
      "$deno https://paths.example.com/allowed/d 2>&1 | grep -c UnknownIssuer >/dev/null && echo unknown",
    );
    expect(stdout, stderr).toBe("200 plain.example.com\n200 paths.example.com\n403 refused\n403 refused\nunknown\n");
    await expectFourAsked(world);
  });

  test("in Rust, with nothing but its standard library, get what is allowed", async () => {
    const world = openWorld(network);
    world.file(join(world.project, "main.rs"), rust);
    execFileSync("/usr/bin/rustc", ["-o", "program", "main.rs"], { cwd: world.project, env: world.env as never });
    const outcome = await run(world, "./program plain.example.com /a", "./program closed.example.com /b");
    expect(jsonIn(outcome), outcome.stderr).toMatchObject([
      { server: "plain.example.com", url: "/a" },
      { code: "NETWORK_DENIED", reason: "host" },
    ]);
    await expectAsked(
      world,
      "allowed GET http://plain.example.com/a 200",
      "refused GET http://closed.example.com/b 403 (host)",
    );
  });

  test("in Python with requests, which brings an authority of its own, keep a connection", async () => {
    const world = openWorld(network);
    world.file(join(world.project, "main.py"), requests);
    const { stdout, stderr } = await run(
      world,
      "/usr/bin/python3 main.py https://paths.example.com/allowed/a http://plain.example.com/b https://closed.example.com/c",
      "REQUESTS_CA_BUNDLE=town.pem /usr/bin/python3 main.py https://open.example.com/d",
    );
    const thrice = (path: string) => [0, 1, 2].map((number) => `${path}?number=${number}`);
    expect(stdout.trim().split("\n"), stderr).toEqual([
      ...["200 paths.example.com", "200 plain.example.com", "403 host", ...thrice("/allowed/a")],
      ...["200 open.example.com", ...thrice("/d")],
    ]);
    const asked = await auditOf(world);
    expect(asked.filter((line) => line === "allowed GET https://paths.example.com/allowed/a 200")).toHaveLength(4);
    expect(asked.filter((line) => line === "allowed tls open.example.com:443")).toHaveLength(2);
  });

  test("that speak gRPC converse in both directions, and get its status, opened on the way or not", async () => {
    const world = openWorld({
      domains: ["whole-grpc.example.com"],
      rules: [{ host: "grpc.example.com", path: "/town.Echo/*", methods: ["POST"] }],
    });
    world.file(join(world.project, "grpc.mjs"), grpc);
    const { stdout, stderr } = await run(
      world,
      "node grpc.mjs https://grpc.example.com /town.Echo/Talk",
      "NODE_EXTRA_CA_CERTS=town.pem node grpc.mjs https://whole-grpc.example.com /town.Echo/Talk",
      "node grpc.mjs https://grpc.example.com /town.Other/Talk",
    );
    const talk = ["status 200 application/grpc", "message echo one", "message echo two", "grpc-status 0"];
    expect(stdout.split("\n").slice(0, 9), stderr).toEqual([
      ...talk,
      ...talk,
      "status 403 application/json; charset=utf-8",
    ]);
    await expectAsked(
      world,
      "allowed POST https://grpc.example.com/town.Echo/Talk 200",
      "allowed tls whole-grpc.example.com:443",
      "refused POST https://grpc.example.com/town.Other/Talk 403 (path)",
    );
  });
});

const fourAddresses = [
  "http://plain.example.com/a",
  "https://paths.example.com/allowed/b",
  "https://paths.example.com/other",
  "https://closed.example.com/c",
];

/** Nothing of whoever hung up on somebody whom it did not know. */
async function expectFourAsked(world: World): Promise<void> {
  const asked = await auditOf(world);
  expect(asked.filter((line) => / https?:/.test(line)).sort()).toEqual([
    "allowed GET http://plain.example.com/a 200",
    "allowed GET https://paths.example.com/allowed/b 200",
    "refused GET https://closed.example.com/c 403 (host)",
    "refused GET https://paths.example.com/other 403 (path)",
  ]);
}

/** Installed once; the path of the program. */
function installDeno(): string {
  const version = "2.9.6";
  const place = resolve(`.make/e2e/deno-${version}`);
  const flags = ["--no-engine-strict", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
  if (!existsSync(place)) {
    const part = `${place}.part`;
    rmSync(part, { recursive: true, force: true });
    execFileSync("npm", ["install", ...flags, "--prefix", part, `deno@${version}`]);
    renameSync(part, place);
  }
  return join(place, `node_modules/@deno/linux-${process.arch}-glibc/deno`);
}

/** Gives each message back as it comes, and the status when all have come. */
const echoGrpc: RequestListener = (request: IncomingMessage, response: ServerResponse) => {
  response.writeHead(200, { "content-type": "application/grpc" });
  request.on("data", (bytes: Buffer) => {
    const word = Buffer.from(`echo ${bytes.subarray(5)}`);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(word.length, 1);
    response.write(Buffer.concat([head, word]));
  });
  request.on("end", () => {
    response.addTrailers({ "grpc-status": "0" });
    response.end();
  });
};
