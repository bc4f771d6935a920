import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type RegistryFinding, type RegistryKind, readRegistries } from "../../src/machine/registries.ts";

const isWithin = (path: string, directory: string) => `${path}/`.startsWith(`${directory}/`);
const made: string[] = [];
afterAll(() => {
  for (const directory of made) rmSync(directory, { recursive: true });
});

/** A machine of files alone; `home/…` is the user's, `project/…` the agent's, `bin/…` lies on PATH. */
class Place {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-registries-")));
  readonly env: Record<string, string | undefined> = { PATH: join(this.root, "bin") };
  /** What the agent may write. */
  readonly writable = new Set(["project"]);

  constructor(files: Readonly<Record<string, string>> = {}) {
    made.push(this.root);
    mkdirSync(join(this.root, "project"));
    for (const [path, text] of Object.entries(files)) this.file(path, text);
  }

  file(path: string, text: string): string {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    if (path.includes("bin/")) chmodSync(file, 0o755);
    return file;
  }

  async read(kind: RegistryKind, env: Readonly<Record<string, string>> = {}) {
    const { variables: _, ...finding } = await this.#find(kind, env);
    return finding;
  }

  /** What the client inside is told. */
  async told(kind: RegistryKind, env: Readonly<Record<string, string>> = {}) {
    return (await this.#find(kind, env)).variables;
  }

  async #find(kind: RegistryKind, env: Readonly<Record<string, string>>): Promise<RegistryFinding> {
    const [finding] = await readRegistries([kind], {
      env: { ...this.env, ...env },
      home: join(this.root, "home"),
      isWritable: (path) => [...this.writable].some((directory) => isWithin(path, join(this.root, directory))),
      root: this.root,
    });
    return finding as RegistryFinding;
  }

  /** `host:port` of each place. */
  async hosts(kind: RegistryKind, env: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
    return (await this.read(kind, env)).places.map(({ host, port }) => `${host}:${port}`);
  }
}

const definitions = `const x = {
  registry: new Definition('registry', {
    default: 'https://npm.example/',
    type: url,
`;

describe("npm's registries", () => {
  test("are those of the user's settings, scopes included, before those of the machine", async () => {
    const place = new Place({
      "home/.npmrc": [
        "; a comment",
        "registry = https://mirror.example/npm/",
        '@house:registry="http://10.0.0.7:4873"',
        "//mirror.example/npm/:_authToken=hunter2",
        "@env:registry=https://${NPM_HOST}/x/",
      ].join("\n"),
      "etc/npmrc": "registry=https://other.example/\n@all:registry=https://all.example/\n",
    });
    expect(await place.hosts("npm", { NPM_HOST: "env.example" })).toEqual([
      "mirror.example:443",
      "10.0.0.7:4873",
      "env.example:443",
      "all.example:443",
    ]);
    expect((await place.read("npm")).places.every(({ path }) => path === null)).toBe(true);
  });

  test("are told to the npm inside, which does not see the file with its tokens, without anybody's password", async () => {
    const place = new Place({ "home/.npmrc": "registry=https://me:hunter2@mirror.example/npm/\n" });
    expect(await place.told("npm")).toEqual({ npm_config_registry: "https://mirror.example/npm/" });
    expect(await new Place({ "home/.npmrc": "registry=nonsense\n" }).told("npm")).toEqual({
      npm_config_registry: "nonsense",
    });
    expect(await new Place({ "home/.npmrc": "@house:registry=https://house.example/\n" }).told("npm")).toEqual({});
  });

  test("are first of all those of the environment, in letters of either size", async () => {
    const place = new Place({ "home/.npmrc": "registry=https://mirror.example/" });
    expect(await place.hosts("npm", { npm_config_registry: "https://env.example" })).toEqual(["env.example:443"]);
    expect(await place.hosts("npm", { NPM_CONFIG_REGISTRY: "https://env.example:8443" })).toEqual(["env.example:8443"]);
    const file = place.file("home/other", "registry=https://other.example/");
    expect(await place.hosts("npm", { npm_config_userconfig: file })).toEqual(["other.example:443"]);
  });

  test.each([
    ["as npm installs it", "lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js"],
    ["as a distribution installs it", "lib/node_modules/@npmcli/config/lib/definitions/definitions.js"],
  ])("are else what the npm that is installed says itself, %s", async (_, file) => {
    const place = new Place({ [file]: definitions, "lib/node_modules/npm/bin/npm-cli.js": "#!/bin/sh\n" });
    mkdirSync(join(place.root, "bin"));
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(place.root, "bin/npm"));
    expect(await place.read("npm")).toEqual({
      kind: "npm",
      places: [{ host: "npm.example", port: 443, path: null, hearsay: true }],
      lacks: null,
    });
  });

  test("are none where nobody names any", async () => {
    expect(await new Place().read("npm")).toEqual({
      kind: "npm",
      places: [],
      lacks: "npm is not installed here and nothing names its registry, so the preset has no hosts",
    });
    expect(await new Place({ "bin/npm": "#!/bin/sh\n" }).hosts("npm")).toEqual([]);
  });

  test("are never what an agent could have written", async () => {
    const place = new Place({
      "project/.npmrc": "registry=https://evil.example/",
      "project/bin/npm": "#!/bin/sh\n",
      "project/node_modules/@npmcli/config/lib/definitions/definitions.js": definitions,
    });
    const env = { npm_config_userconfig: join(place.root, "project/.npmrc"), PATH: join(place.root, "project/bin") };
    expect(await place.hosts("npm", env)).toEqual([]);
    mkdirSync(join(place.root, "home"));
    symlinkSync("../project/.npmrc", join(place.root, "home/.npmrc"));
    expect(await place.hosts("npm")).toEqual([]);
  });
});

const packageIndex = `
PyPI = PackageIndex("https://index.example/", file_storage_domain="files.example")
TestPyPI = PackageIndex(
    "https://test.example/", file_storage_domain="test-files.example"
)
`;

describe("Python's indexes", () => {
  test("are those of pip's settings, wherever they lie", async () => {
    const place = new Place({
      "home/.config/pip/pip.conf": [
        "[global]",
        "index-url = https://user:pw@mirror.example/simple",
        "extra-index-url =",
        "    https://one.example/simple",
        "    http://two.example:8080/simple",
        "[install]",
        "trusted-host = no.example",
      ].join("\n"),
      "etc/pip.conf": "[global]\nindex_url = https://other.example/simple\nextra_index_url = file:///srv/wheels\n",
    });
    expect(await place.told("pypi")).toMatchObject({
      PIP_INDEX_URL: expect.stringMatching(/^https:\/\/mirror\.example/),
      PIP_EXTRA_INDEX_URL: expect.stringMatching(/^https?:\/\/one\.example\S* https?:\/\/two\.example:8080/),
    });
    expect(await new Place().told("pypi")).toEqual({});
    expect(await place.hosts("pypi")).toEqual(["mirror.example:443", "one.example:443", "two.example:8080"]);
    const config = place.file("home/own.conf", "[global]\nindex-url=https://own.example/\n");
    expect(await place.hosts("pypi", { PIP_CONFIG_FILE: config })).toContain("own.example:443");
  });

  test("are those of the variables of pip and of uv, and of uv's settings", async () => {
    const place = new Place({
      "home/.config/uv/uv.toml": 'index-url = "https://uv.example/simple"\n[[index]]\nurl = "https://more.example/"\n',
      "etc/uv/uv.toml": "not toml",
    });
    expect(await place.hosts("pypi")).toEqual(["uv.example:443", "more.example:443"]);
    const env = {
      PIP_INDEX_URL: "https://a.example/simple",
      PIP_EXTRA_INDEX_URL: "https://b.example/ https://c.example/",
      UV_INDEX: "house=https://d.example/simple",
    };
    expect(await new Place().hosts("pypi", env)).toEqual([
      "a.example:443",
      "b.example:443",
      "c.example:443",
      "d.example:443",
    ]);
  });

  test.each([
    "usr/lib/python3/dist-packages",
    "usr/local/lib/python3.13/site-packages",
    "home/.local/lib/python3.11/site-packages",
    "home/.pyenv/versions/3.12.1/lib/python3.12/site-packages",
    "lib/python3.9/site-packages",
  ])("are else what the pip that is installed says itself, in %s", async (directory) => {
    const place = new Place({
      [`${directory}/pip/_internal/models/index.py`]: packageIndex,
      "bin/pip3": "#!/bin/sh\n",
      "usr/lib/python3.8/other": "",
    });
    expect(await place.read("pypi")).toEqual({
      kind: "pypi",
      places: [
        { host: "index.example", port: 443, path: null, hearsay: true },
        { host: "files.example", port: 443, path: null, hearsay: true },
      ],
      lacks: null,
    });
    // A mirror has its own files.
    expect(await place.hosts("pypi", { PIP_INDEX_URL: "https://mirror.example/" })).toEqual(["mirror.example:443"]);
    expect(await place.hosts("pypi", { PIP_INDEX_URL: "https://index.example/simple" })).toContain("files.example:443");
  });

  test("are none where nobody names any", async () => {
    expect(await new Place({ "etc/pip.conf": "[global]\nfind-links = /opt/wheels\n" }).read("pypi")).toEqual({
      kind: "pypi",
      places: [],
      lacks: "pip is not installed here and nothing names its index, so the preset has no hosts",
    });
  });
});

describe("the sources of apt", () => {
  test("are read in both of their forms, with their paths where these can be seen", async () => {
    const place = new Place({
      "etc/apt/sources.list": [
        "# deb http://no.example/debian x main",
        "deb http://one.example/debian stable main contrib",
        "deb-src [arch=amd64 signed-by=/x] https://two.example/debian/ stable main",
        "deb cdrom:[Debian]/ stable main",
      ].join("\n"),
      "etc/apt/sources.list.d/house.list": "deb http://10.0.0.7:3142/debian/ stable main\n",
      "etc/apt/sources.list.d/debian.sources": [
        "Types: deb",
        "# URIs: http://no.example/",
        "URIs: http://three.example/debian",
        " http://four.example/debian",
        "Suites: stable",
        "",
        "Types: deb",
        "Enabled: no",
        "URIs: http://off.example/",
        "",
        "Types: deb",
        "URIs: mirror+file:///etc/apt/mirrors/list",
      ].join("\n"),
      "etc/apt/sources.list.d/old.list.disabled": "deb http://off.example/ x main\n",
      "etc/apt/mirrors/list": "http://five.example/debian priority:1 # comment\n",
    });
    expect(await place.read("debian")).toEqual({
      kind: "debian",
      places: [
        { host: "one.example", port: 80, path: "/debian/**" },
        { host: "two.example", port: 443, path: null },
        { host: "10.0.0.7", port: 3142, path: "/debian/**" },
        { host: "three.example", port: 80, path: "/debian/**" },
        { host: "four.example", port: 80, path: "/debian/**" },
        { host: "five.example", port: 80, path: "/debian/**" },
      ],
      lacks: null,
    });
  });

  test("have no path where it is spelled oddly, and everything below the root", async () => {
    const place = new Place({ "etc/apt/sources.list": "deb http://a.example//x y z\ndeb http://b.example y z\n" });
    expect((await place.read("debian")).places).toEqual([
      { host: "a.example", port: 80, path: null },
      { host: "b.example", port: 80, path: "/**" },
    ]);
  });

  test("are none on another system", async () => {
    expect((await new Place().read("debian")).lacks).toBe("apt has no sources here, so the preset has no hosts");
  });
});

describe("Go's proxies", () => {
  test("are those of the environment, else of `go env -w`, else of Go itself", async () => {
    const place = new Place({
      "usr/lib/go/go.env": "# defaults\nGOPROXY=https://go.example,direct\nGOSUMDB=sum.example\n",
    });
    expect(await place.hosts("go")).toEqual(["go.example:443", "sum.example:443"]);
    expect((await place.read("go")).places).toMatchObject([{ hearsay: true }, { hearsay: true }]);
    place.file("home/.config/go/env", "GOPROXY=https://house.example/go|direct\nGOSUMDB=off\n");
    expect(await place.hosts("go")).toEqual(["house.example:443"]);
    const env = { GOPROXY: "http://a.example:3000,https://b.example,off", GOSUMDB: "x+key https://sums.example/db" };
    expect(await place.hosts("go", env)).toEqual(["a.example:3000", "b.example:443", "sums.example:443"]);
  });

  test("are found beside the go on PATH", async () => {
    const place = new Place({ "go/go.env": "GOPROXY=https://go.example\n", "go/bin/go": "#!/bin/sh\n" });
    expect(await place.hosts("go", { PATH: join(place.root, "go/bin") })).toEqual(["go.example:443"]);
    expect(await place.hosts("go", { PATH: "", GOROOT: join(place.root, "go") })).toEqual(["go.example:443"]);
  });

  test("are none where modules are fetched directly", async () => {
    const finding = await new Place().read("go", { GOPROXY: "direct", GOSUMDB: "sum.example+abc" });
    expect(finding).toMatchObject({
      places: [{ host: "sum.example" }],
      lacks: expect.stringContaining("no module proxy"),
    });
  });
});

describe("cargo's registries", () => {
  const used = (host: string) => ({
    [`home/.cargo/registry/index/${host}-1cd66030c949c28d/config.json`]: `{"dl":"https://dl.${host}/crates/{crate}","api":"https://api.${host}"}`,
  });

  test("are those that replace its own, and those that have a name", async () => {
    const place = new Place({
      "home/.cargo/config.toml": [
        '[source.crates-io]\nreplace-with = "a"',
        '[source.a]\nreplace-with = "b"',
        '[source.b]\nregistry = "sparse+https://mirror.example/index/"',
        '[registries.house]\nindex = "https://git.example/index"',
      ].join("\n"),
      ...used("mirror.example"),
    });
    const finding = await place.read("crates", { CARGO_REGISTRIES_MORE_INDEX: "sparse+https://more.example/" });
    expect(finding.places.map(({ host }) => host)).toEqual([
      "mirror.example",
      "git.example",
      "more.example",
      "dl.mirror.example",
      "api.mirror.example",
    ]);
    expect(finding.lacks).toContain("name that host in network.domains");
  });

  test.each([
    ["on PATH", "bin/cargo", {}],
    ["of a toolchain", "home/.rustup/toolchains/stable/bin/cargo", {}],
  ])("are else what the cargo %s was built with", async (_, program) => {
    const place = new Place({
      [program]: "\x7fELF\0junk\0sparse+https://index.example/junk",
      ...used("index.example"),
    });
    expect(await place.read("crates")).toEqual({
      kind: "crates",
      places: [
        { host: "index.example", port: 443, path: null, hearsay: true },
        { host: "dl.index.example", port: 443, path: null, hearsay: true },
        { host: "api.index.example", port: 443, path: null, hearsay: true },
      ],
      lacks: null,
    });
  });

  test("are none where nobody names any, or settings make no sense", async () => {
    const turning = '[source.crates-io]\nreplace-with = "crates-io"\n';
    const settings = [
      "",
      "no toml",
      turning,
      "source = 1",
      '[registries]\nx = 1\n[source.crates-io]\nreplace-with = "no"',
    ];
    for (const text of settings) {
      expect(await new Place({ "home/.cargo/config": text, "bin/cargo": "no index" }).read("crates")).toMatchObject({
        places: [],
        lacks: expect.stringContaining("cargo is not installed here"),
      });
    }
  });

  test("are never what an agent could have written", async () => {
    const place = new Place({ "project/bin/cargo": "sparse+https://evil.example/" });
    expect(await place.hosts("crates", { PATH: join(place.root, "project/bin") })).toEqual([]);
  });

  test("are known by half where what was noted of them is damaged", async () => {
    const place = new Place({
      "home/.cargo/config.toml": '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "no address"\n',
      "home/.cargo/registry/index/more.example-1/config.json": "{",
    });
    const finding = await place.read("crates", { CARGO_REGISTRIES_MORE_INDEX: "sparse+https://more.example/" });
    expect(finding).toMatchObject({ places: [{ host: "more.example" }], lacks: expect.stringContaining("until then") });
  });
});

test("only the presets that were asked for are looked up, and each place is named once", async () => {
  const place = new Place({ "home/.npmrc": "registry=https://[::1]:4873/\n@a:registry=https://[::1]:4873/b\n" });
  const context = {
    env: place.env,
    home: join(place.root, "home"),
    isWritable: () => false,
    root: place.root,
  };
  expect(await readRegistries([], context)).toEqual([]);
  expect(await readRegistries(["npm", "go"], context)).toMatchObject([
    { kind: "npm", places: [{ host: "::1", port: 4873, path: null }] },
    { kind: "go", places: [] },
  ]);
});

describe("what an agent could have written says nothing, however it is reached", () => {
  test("in a directory beside the project that it may write", async () => {
    const place = new Place({ "shared/pip.conf": "[global]\nindex-url = http://10.0.0.1/\n" });
    const env = { PIP_CONFIG_FILE: join(place.root, "shared/pip.conf") };
    expect(await place.hosts("pypi", env)).toEqual(["10.0.0.1:80"]);
    place.writable.add("shared");
    expect(await place.hosts("pypi", env)).toEqual([]);
  });

  test("behind a link of the owner's to a whole directory", async () => {
    const place = new Place({
      "home/.rustup/toolchains/own/lib/x": "",
      "project/stage1/bin/cargo": "sparse+https://evil.example/",
      "elsewhere/stage1/bin/cargo": "sparse+https://index.example/",
    });
    symlinkSync(join(place.root, "project/stage1"), join(place.root, "home/.rustup/toolchains/stage1"));
    expect(await place.hosts("crates")).toEqual([]);
    symlinkSync(join(place.root, "elsewhere/stage1"), join(place.root, "home/.rustup/toolchains/stage2"));
    expect(await place.hosts("crates")).toEqual(["index.example:443"]);
  });

  test("where its own link leads to a file of the owner's", async () => {
    const place = new Place({ "home/real.npmrc": "registry=http://10.0.0.1/\n" });
    symlinkSync("../home/real.npmrc", join(place.root, "project/npmrc"));
    const env = { npm_config_userconfig: join(place.root, "project/npmrc") };
    expect(await place.hosts("npm", env)).toEqual([]);
    place.writable.clear();
    expect(await place.hosts("npm", env)).toEqual(["10.0.0.1:80"]);
  });

  test("and a pipe keeps nobody waiting", async () => {
    const place = new Place({ "home/x": "" });
    execFileSync("mkfifo", [join(place.root, "home/.npmrc")]);
    expect(await place.hosts("npm")).toEqual([]);
  });
});

test("what a registry says of itself is told from what the owner has written", async () => {
  const place = new Place({
    "home/.cargo/config.toml": '[registries.house]\nindex = "sparse+http://10.0.0.1:80/index/"\n',
    "home/.cargo/registry/index/10.0.0.1-1/config.json": '{"dl":"http://169.254.169.254/x","api":"http://10.0.0.1/"}',
  });
  expect((await place.read("crates")).places).toEqual([
    { host: "10.0.0.1", port: 80, path: null },
    { host: "169.254.169.254", port: 80, path: null, hearsay: true },
  ]);
});
