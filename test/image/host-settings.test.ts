import { describe, expect, test } from "vitest";
import { cafileIn, extraCertificates } from "../../src/image/certificates.ts";
import { mirrorLines, readAptSettings, readRelease, rootRecipe } from "../../src/image/debian.ts";
import { firstProxies, hasLoopbackProxy, proxyArguments, withoutCredentials } from "../../src/image/proxies.ts";
import { proxiesOf } from "../../src/upstream/proxies.ts";

const pem = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;

describe("certificates beyond the usual", () => {
  test("are those that nobody else has, each once, in one order", () => {
    const bundles = [`${pem("BBBB")}# words\n${pem("AAAA")}`, pem("AA\nAA"), pem("known")];
    expect(extraCertificates(bundles, [pem("kno\nwn")])).toEqual([pem("AAAA"), pem("BBBB")]);
  });

  test("are written in lines of 64 letters", () => {
    const [one = ""] = extraCertificates([pem("x".repeat(130))], []);
    expect(one.split("\n").map((line) => line.length)).toEqual([27, 64, 64, 2, 25, 0]);
  });

  test("are none where there is nothing to read", () => {
    expect(extraCertificates(["", "no certificate", pem("")], [])).toEqual([]);
  });

  test.each([
    ["cafile=/a/b.pem", "/a/b.pem"],
    ['x=1\n cafile = "/a b.pem" \n', "/a b.pem"],
    ["; cafile=/a", null],
    ["", null],
  ])("may be named by npm: %j", (npmrc, expected) => {
    expect(cafileIn(npmrc)).toBe(expected);
  });
});

describe("the host's mirror", () => {
  const bookworm = { id: "debian", codename: "bookworm" };

  test("is known by os-release", () => {
    expect(readRelease('NAME="Debian"\nID=debian\nVERSION_CODENAME=bookworm\n')).toEqual(bookworm);
    expect(readRelease('ID="fedora"\n')).toEqual({ id: "fedora", codename: "" });
  });

  test("is taken from lines, with the release replaced", () => {
    const list = [
      "# deb http://mirror.test/old bookworm main",
      "deb http://mirror.test/debian/ bookworm main contrib",
      "deb [signed-by=/k.gpg arch=amd64] https://user:secret@mirror.test/security bookworm-security main",
      "deb http://mirror.test/debian bookworm-backports main",
      "deb http://mirror.test/extra bookworm contrib",
      "deb-src http://mirror.test/debian bookworm main",
      "deb cdrom:[x]/ bookworm main",
      "deb http://mirror.test/debian bookworm main",
    ];
    expect(mirrorLines([list.join("\n")], bookworm)).toEqual([
      "deb http://mirror.test/debian trixie main",
      "deb https://mirror.test/security trixie-security main",
    ]);
  });

  test("is taken from paragraphs", () => {
    const sources = [
      "Types: deb deb-src",
      "# a note",
      "URIs: http://one.test/debian http://two.test/debian",
      "Suites: stable stable-updates",
      "Components: main",
      "",
      "Types: deb",
      "URIs: http://off.test/debian",
      "Suites: bookworm",
      "Components: main",
      "Enabled: no",
      "",
      "Types: deb-src",
      "URIs: http://source.test/debian",
      "Suites: bookworm",
      "Components: main",
    ];
    expect(mirrorLines(["", sources.join("\n")], bookworm)).toEqual([
      "deb http://one.test/debian trixie main",
      "deb http://one.test/debian trixie-updates main",
      "deb http://two.test/debian trixie main",
      "deb http://two.test/debian trixie-updates main",
    ]);
  });

  test.each([
    ["another distribution", { id: "ubuntu", codename: "noble" }, "deb http://m.test/x noble main"],
    ["one without a name", { id: "debian", codename: "" }, "deb http://m.test/x bookworm main"],
    ["security alone", bookworm, "deb http://m.test/x bookworm-security main"],
    ["nothing", bookworm, ""],
  ])("is left to mmdebstrap and the base for %s", (_what, release, list) => {
    expect(mirrorLines([list], release)).toEqual([]);
  });

  test("comes with what apt needs to use it, and no more", () => {
    const dump = [
      'Acquire::Check-Valid-Until "false";',
      'Acquire::Retries "3";',
      'Acquire::http::Proxy "http://apt.test:3142";',
      'Acquire::https::Proxy "DIRECT";',
      'Acquire::ForceIPv4 "";',
      'DPkg::Post-Invoke:: "rm -rf /";',
    ];
    expect(readAptSettings(dump.join("\n"))).toEqual({
      options: ['Acquire::Check-Valid-Until "false";', 'Acquire::Retries "3";'],
      httpProxy: "http://apt.test:3142",
      httpsProxy: null,
    });
    expect(readAptSettings("")).toEqual({ options: [], httpProxy: null, httpsProxy: null });
  });
});

describe("a root of Debian", () => {
  const host = { isRoot: true, arch: "x64" };

  test("is written to standard output, by root or in a user namespace", () => {
    const { args } = rootRecipe(["deb http://m.test/debian trixie main"], ['Acquire::Retries "3";'], host);
    expect(args[0]).toBe("--mode=root");
    expect(args.slice(-4)).toEqual([
      '--aptopt=Acquire::Retries "3";',
      "trixie",
      "-",
      "deb http://m.test/debian trixie main",
    ]);
    expect(rootRecipe([], [], { ...host, isRoot: false }).args).toContain("--mode=unshare");
  });

  test("is the same for the same mirror and architecture, whoever makes it", () => {
    const { tag } = rootRecipe(["m"], [], host);
    expect(tag).toMatch(/^localhost\/podbot-base:trixie-[0-9a-f]{12}$/);
    expect(rootRecipe(["m"], ["o"], { ...host, isRoot: false }).tag).toBe(tag);
    expect(rootRecipe(["n"], [], host).tag).not.toBe(tag);
    expect(rootRecipe(["m"], [], { ...host, arch: "arm64" }).tag).not.toBe(tag);
  });
});

describe("proxies", () => {
  const nothing = { http: null, https: null, none: null };

  test("are variables in small letters or large ones", () => {
    expect(proxiesOf({ http_proxy: "a", HTTP_PROXY: "b", HTTPS_PROXY: "c", no_proxy: "" })).toEqual({
      http: "a",
      https: "c",
      none: null,
    });
    expect(proxiesOf({})).toEqual(nothing);
  });

  test("are those of the first who names any", () => {
    const [https, http] = [
      { ...nothing, https: "a" },
      { ...nothing, http: "b" },
    ];
    expect(firstProxies([{ ...nothing, none: "x" }, https, http])).toBe(https);
    expect(firstProxies([http])).toBe(http);
    expect(firstProxies([nothing])).toEqual(nothing);
  });

  test("reach the build in both spellings", () => {
    expect(proxyArguments({ http: "a", https: null, none: "n" })).toEqual({
      http_proxy: "a",
      HTTP_PROXY: "a",
      no_proxy: "n",
      NO_PROXY: "n",
    });
  });

  test.each([
    ["http://localhost:3128", true],
    ["127.0.0.1:3128", true],
    ["http://user:secret@127.1.2.3:1", true],
    ["http://[::1]:3128", true],
    ["http://proxy.test:3128", false],
    ["http://localhost.test", false],
    ["http://", false],
    [null, false],
  ])("are on the loopback, or not: %s", (url, expected) => {
    expect(hasLoopbackProxy({ http: url, https: null, none: null })).toBe(expected);
  });

  test.each([
    ["https://user:secret@a.test/x@y", "https://a.test/x@y"],
    ["https://a.test/x@y", "https://a.test/x@y"],
    ["https://user:p@ssw0rd@a.test/", "https://a.test/"],
    ["https://a.test/npm?_auth=secret#x", "https://a.test/npm"],
  ])("and registries are shown without passwords: %s", (url, expected) => {
    expect(withoutCredentials(url)).toBe(expected);
  });
});
