import { createHash } from "node:crypto";
import { copyFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newWorld, type Outcome, type World } from "../world.ts";
import { fetching, getting, handshaking, socketing, speaking, tunnelling } from "./client-programs.ts";
import { allow, expectAsked, jsonIn, Town } from "./stage.ts";

const town = new Town();
beforeAll(async () => {
  await town.http("plain.example.com");
  await town.https("open.example.com", town.echo("open.example.com"), echoSocket);
  await town.https("paths.example.com");
  await town.http("sockets.example.com", town.echo("sockets"), echoSocket);
  await town.https("safe-sockets.example.com", town.echo("sockets"), echoSocket);
  await town.tcp("greeting.example.com", (socket) => {
    socket.write("220 who is there\r\n");
    socket.once("data", (said) => socket.end(`250 hello ${said}`));
  });
  await town.tcp("asked.example.com", (socket) => {
    socket.once("data", (said) => socket.end(said.equals(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])) ? "N" : "?"));
  });
});
afterAll(() => town[Symbol.asyncDispose]());

const network = {
  domains: ["plain.example.com", "open.example.com", "greeting.example.com:2525", "asked.example.com:5432"],
  rules: [
    { host: "paths.example.com", path: "/allowed/**" },
    { host: "sockets.example.com", path: "/live/*" },
    { host: "safe-sockets.example.com", path: "/live/*" },
  ],
};

/** A world with these rules, with the programs and the town's authority in its project. */
function openWorld(): World {
  const world = newWorld();
  allow(world, town, { network });
  copyFileSync(town.trustFile, join(world.project, "town.pem"));
  for (const [name, text] of Object.entries({ "fetch.mjs": fetching, "get.py": getting, "shake.py": handshaking }))
    world.file(join(world.project, name), text);
  world.file(join(world.project, "speak.py"), speaking);
  return world;
}

interface Client {
  readonly name: string;
  /** Prints the body of what is answered. With a file, it believes those alone who are in there. */
  get(url: string, trust?: string): string;
  /** In which HTTP it asks. */
  readonly version?: string;
}

const node = `"${process.execPath}"`;
const proxy = "http://127.0.0.1:3128";
const curl = (flags: string, url: string, trust?: string) =>
  `curl -sS -m 20 ${flags} ${trust === undefined ? "" : `--cacert ${trust}`} ${url}`;
const trusting = (variable: string, trust?: string) => (trust === undefined ? "" : `${variable}=${trust} `);

const clients: readonly Client[] = [
  { name: "curl", get: (url, trust) => curl("--http1.1", url, trust) },
  { name: "curl in HTTP/2", get: (url, trust) => curl("--http2", url, trust), version: "2.0" },
  { name: "curl by IPv4 alone", get: (url, trust) => curl("-4 --http1.1", url, trust) },
  {
    name: "curl with the variables of a proxy",
    get: (url, trust) =>
      `http_proxy=${proxy} HTTPS_PROXY=${proxy} no_proxy= NO_PROXY= ${curl("--http1.1", url, trust)}`,
  },
  {
    name: "curl with one proxy for all",
    get: (url, trust) => `ALL_PROXY=${proxy} NO_PROXY= ${curl("--http1.1", url, trust)}`,
  },
  { name: "curl through a tunnel", get: (url, trust) => curl(`--http1.1 --proxytunnel -x ${proxy}`, url, trust) },
  {
    name: "wget",
    get: (url, trust) =>
      `wget -qO- -T 20 -t 1 --content-on-error ${trust === undefined ? "" : `--ca-certificate=${trust}`} ${url}`,
  },
  { name: "Node's fetch", get: (url, trust) => `${trusting("NODE_EXTRA_CA_CERTS", trust)}${node} fetch.mjs ${url}` },
  { name: "Python's urllib", get: (url, trust) => `${trusting("SSL_CERT_FILE", trust)}python3 get.py ${url}` },
  { name: "Python's ssl", get: (url, trust) => `${trusting("SSL_CERT_FILE", trust)}python3 shake.py ${url}` },
];

describe.each(clients)("$name", ({ get, version = "1.1" }) => {
  test("gets what is allowed, an answer where it is not, and each is told of once", async () => {
    const world = openWorld();
    const script = [
      get("http://plain.example.com/a"),
      // Not opened on the way: only the authority of the town is believed.
      get("https://open.example.com/b", "town.pem"),
      // Opened on the way, and believed as everything is that the box believes by itself.
      get("https://paths.example.com/allowed/c"),
      get("https://paths.example.com/other"),
      get("https://closed.example.com/d"),
      get("http://closed.example.com/e"),
    ].join("; echo;\n");
    const outcome = await world.podbot(["sandbox", "--", "sh", "-c", `${script}; echo`]);
    const denied = (host: string, reason: string) => ({ code: "NETWORK_DENIED", host, reason });
    expect(jsonIn(outcome), outcome.stderr).toMatchObject([
      { server: "plain.example.com", url: "/a", version: "1.1" },
      { server: "open.example.com", url: "/b", version },
      { server: "paths.example.com", url: "/allowed/c", version },
      denied("paths.example.com", "path"),
      denied("closed.example.com", "host"),
      denied("closed.example.com", "host"),
    ]);
    await expectAsked(
      world,
      "allowed GET http://plain.example.com/a 200",
      "allowed tls open.example.com:443",
      "allowed GET https://paths.example.com/allowed/c 200",
      "refused GET https://paths.example.com/other 403 (path)",
      "refused GET https://closed.example.com/d 403 (host)",
      "refused GET http://closed.example.com/e 403 (host)",
    );
  });
});

test("who answers for a host is the server itself or the session's authority, and never the other of the two", async () => {
  const world = openWorld();
  const session = "/run/podbot/trust/authority.pem";
  const whole = "https://open.example.com/a";
  const opened = "https://paths.example.com/allowed/b";
  const asks = [
    curl("-o /dev/null", whole, "town.pem"),
    curl("-o /dev/null", whole, session),
    curl("-o /dev/null", opened, "town.pem"),
    curl("-o /dev/null", opened, session),
    // By itself, a box believes whom its owner believes.
    curl("-o /dev/null", whole),
  ];
  const script = asks.map((ask) => `${ask}; echo $?`).join("\n");
  const { stdout, stderr } = await world.podbot(["sandbox", "--", "sh", "-c", script]);
  expect(stdout).toBe("0\n60\n60\n0\n0\n");
  expect(stderr.match(/SSL certificate problem/g)).toHaveLength(2);
});

test("openssl sees who answers: the server itself, or the session's authority for it", async () => {
  const world = openWorld();
  const look = (host: string, trust: string) =>
    `openssl s_client -connect ${host}:443 -servername ${host} -verify_hostname ${host} -verify_return_error ${trust} \
</dev/null 2>&1 | grep -E '^Verification|^ *Verify return code' | sort -u`;
  const script = [look("open.example.com", "-CAfile town.pem"), look("paths.example.com", "")].join("\n");
  const { stdout } = await world.podbot(["sandbox", "--", "sh", "-c", script]);
  expect(stdout.split("\n").filter((line) => line.includes("Verification: OK"))).toHaveLength(2);
});

test("a WebSocket is opened where its path is allowed, and told of once; where it is not, it gets an answer", async () => {
  const world = openWorld();
  world.file(join(world.project, "socket.mjs"), socketing);
  const urls = [
    "ws://sockets.example.com/live/a",
    "wss://safe-sockets.example.com/live/b",
    "wss://safe-sockets.example.com/other",
    "ws://closed.example.com/c",
    "wss://closed.example.com/d",
  ];
  const script = [
    ...urls.map((url) => `${node} socket.mjs ${url}`),
    // Not opened on the way.
    `NODE_EXTRA_CA_CERTS=town.pem ${node} socket.mjs wss://open.example.com/e`,
  ].join("\n");
  const outcome = await world.podbot(["sandbox", "--", "sh", "-c", script]);
  expect(outcome.stdout.match(/^101 .*$/gm), outcome.stderr).toEqual(["101 hello", "101 hello", "101 hello"]);
  const denied = (host: string, reason: string) => ({ code: "NETWORK_DENIED", host, reason });
  expect(jsonIn(outcome)).toMatchObject([
    denied("safe-sockets.example.com", "path"),
    denied("closed.example.com", "host"),
    denied("closed.example.com", "host"),
  ]);
  await expectAsked(
    world,
    "allowed GET http://sockets.example.com/live/a 101",
    "allowed GET https://safe-sockets.example.com/live/b 101",
    "refused GET https://safe-sockets.example.com/other 403 (path)",
    "refused GET http://closed.example.com/c 403 (host)",
    "refused GET https://closed.example.com/d 403 (host)",
    "allowed tls open.example.com:443",
  );
});

describe("protocols that are not of the web", () => {
  const say = async (world: World, ...places: readonly string[]): Promise<Outcome> =>
    world.podbot(["sandbox", "--", "sh", "-c", places.map((place) => `python3 speak.py ${place}`).join("\n")]);

  test("in which the server speaks first go by host and port", async () => {
    const world = openWorld();
    const { stdout } = await say(
      world,
      "greeting.example.com 2525 hear",
      "closed.example.com 2525 hear",
      "closed.example.com 2526 hear",
    );
    expect(stdout).toBe(
      "greeting.example.com 2525 220 who is there 250 hello friend\n" +
        "closed.example.com 2525 Connection reset by peer\n" +
        "closed.example.com 2526 Connection refused\n",
    );
    await expectAsked(world, "allowed tcp greeting.example.com:2525", "refused tcp closed.example.com:2525 (host)");
  });

  test("in which the client speaks first, too", async () => {
    const world = openWorld();
    const { stdout } = await say(world, "asked.example.com 5432 ask", "greeting.example.com 5432 ask");
    expect(stdout).toBe("asked.example.com 5432 N\ngreeting.example.com 5432 Connection reset by peer\n");
    await expectAsked(world, "allowed tcp asked.example.com:5432", "refused tcp greeting.example.com:5432 (port)");
  });

  test("through a tunnel of the proxy's door go by the same, and a refusal has words", async () => {
    const world = openWorld();
    world.file(join(world.project, "tunnel.py"), tunnelling);
    const places = ["greeting.example.com:2525", "closed.example.com:5432"];
    const script = places.map((place) => `python3 tunnel.py ${place}`).join("\n");
    const outcome = await world.podbot(["sandbox", "--", "sh", "-c", script]);
    expect(outcome.stdout).toContain("HTTP/1.1 200 Connection Established\n220 who is there\n250 hello friend\n");
    expect(outcome.stdout).toContain("HTTP/1.1 403 Forbidden\n");
    expect(jsonIn(outcome)).toMatchObject([{ code: "NETWORK_DENIED", reason: "host" }]);
    await expectAsked(world, "allowed tcp greeting.example.com:2525", "refused tcp closed.example.com:5432 403 (host)");
  });
});

/** Grants a WebSocket, and gives back the first frame as it is: short, and no longer masked. */
function echoSocket({ headers }: IncomingMessage, socket: Duplex): void {
  const accept = createHash("sha1")
    .update(`${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64");
  const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write(`${[...head, `Sec-WebSocket-Accept: ${accept}`].join("\r\n")}\r\n\r\n`);
  socket.once("data", (frame: Buffer) => {
    const mask = frame.subarray(2, 6);
    const word = frame.subarray(6).map((byte, at) => byte ^ (mask[at % 4] as number));
    socket.write(Buffer.concat([Buffer.from([0x81, word.length]), word]));
    socket.once("data", () => socket.end(Buffer.from([0x88, 0])));
  });
}
