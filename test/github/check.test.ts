import { chmodSync, readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { newWorld, type World } from "../world.ts";
import { Town, type TownOptions } from "./town.ts";

async function stage(options: TownOptions = {}, more = ""): Promise<{ readonly town: Town; readonly world: World }> {
  const town = await Town.open(options);
  onTestFinished(() => town[Symbol.asyncDispose]());
  const world = newWorld();
  world.file(
    "home/.config/podbot/config.toml",
    `[github]
app_id = ${town.appId}
installation_id = ${town.installationId}
private_key_path = "~/app.pem"
api_url = "${town.app.apiUrl}"
${more}`,
  );
  world.file("home/app.pem", readFileSync(town.keyFile, "utf8"), 0o600);
  return { town, world };
}

/** Without what is different each time. */
const plain = (text: string) => text.replace(/SHA256:\S{44}/, "SHA256:…").replace(/\d+ min/, "N min");

describe("podbot github check", () => {
  test("shows key, App, installation, permissions and clock on one screen, and mints nothing", async () => {
    const { town, world } = await stage();
    const { status, stdout, stderr } = await world.podbot(["github", "check"]);
    expect(plain(stdout)).toBe(`ok       key               app.pem, RSA, 2048 bits, SHA256:…
ok       app               Town App (town-app, 4711) of example
ok       installation      42 on example, selected repositories
ok       permissions       contents: write, metadata: read
ok       clock             agrees with GitHub's

Tokens can be had.
`);
    expect([status, stderr, town.minted]).toEqual([0, "", []]);
  });

  test("says the same as JSON, and whether a repository is the installation's", async () => {
    const { town, world } = await stage();
    const { status, stdout } = await world.podbot(["github", "check", "--json", "example/name"]);
    const { able, code, findings } = JSON.parse(stdout);
    expect([status, able, code]).toEqual([0, true, null]);
    expect(findings.map(({ name }: { name: string }) => name)).toEqual([
      "key",
      "app",
      "installation",
      "permissions",
      "repository",
      "clock",
    ]);
    expect((await world.podbot(["github", "check", "example/none"])).stdout).toContain(
      "missing  repository        GitHub does not show example/none to the App",
    );
    for (const body of [
      { id: 4711, slug: "s", name: "n" },
      { id: 42, permissions: { contents: "write", metadata: "read" } },
      { id: 7 },
    ]) {
      town.troubles.push({ status: 200, body });
    }
    expect((await world.podbot(["github", "check", "example/name"])).stdout).toContain(
      "→ Set github.installation_id to 7.",
    );
  });

  test("tells what is missing, with the way out, and ends accordingly", async () => {
    const { town, world } = await stage({}, '[github.permissions]\nissues = "write"\n');
    const lacking = await world.podbot(["github", "check"]);
    expect(lacking.status).toBe(125);
    expect(lacking.stdout).toContain("missing  permissions       the installation lacks issues: write\n");
    expect(lacking.stdout).toContain("There is no token to be had yet.");
    town.permissions = { ...town.permissions, issues: "admin" };
    expect((await world.podbot(["github", "check"])).status).toBe(0);
    town.suspended = true;
    expect((await world.podbot(["github", "check"])).stdout).toContain("repositories, suspended\n");
    town.troubles.push({ status: 401, body: { message: "Bad credentials" } });
    const refused = await world.podbot(["github", "check", "--json"]);
    expect(refused.status).toBe(125);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      able: false,
      code: "GITHUB_AUTHENTICATION",
      findings: [{ name: "key" }, { name: "app", state: "missing" }, { name: "clock" }],
    });
  });

  test("begins with the key", async () => {
    const { town, world } = await stage();
    chmodSync(`${world.home}/app.pem`, 0o644);
    const open = await world.podbot(["github", "check"]);
    expect(open.status).toBe(0);
    expect(open.stdout).toMatch(/^weak {5}key .*\n.*→ .*chmod 600/);
    world.file("home/app.pem", "hello\n");
    town.asked.length = 0;
    const { status, stdout } = await world.podbot(["github", "check"]);
    expect([status, town.asked]).toEqual([2, []]);
    expect(stdout).toContain("missing  key               The GitHub App's private key app.pem is not a key in PEM\n");
  });

  test("names a clock that is wrong, and makes up for it", async () => {
    for (const [aheadMs, words] of [
      [7_000_000, "behind"],
      [-7_000_000, "ahead of"],
    ] as const) {
      const { world } = await stage({ aheadMs });
      const { status, stdout } = await world.podbot(["github", "check"]);
      expect(plain(stdout)).toContain(`weak     clock             N min ${words} GitHub's\n`);
      expect(status).toBe(0);
    }
  });

  test("lists the keys that the configuration lacks", async () => {
    const world = newWorld();
    const { status, stderr } = await world.podbot(["github", "check"]);
    expect(status).toBe(2);
    expect(stderr).toContain("The configuration lacks github.app_id, github.installation_id, github.private_key_path.");
    expect(stderr).toContain("(GITHUB_CONFIG; docs/errors.md)");
  });

  test("is the one thing that podbot github does", async () => {
    const { stderr, status } = await newWorld().podbot(["github", "mint"]);
    expect([status, stderr]).toEqual([2, expect.stringContaining("there is no mint")]);
  });

  test("of the built program trusts the authorities that Node is told of", async () => {
    const { town, world } = await stage({ tls: true });
    const run = (env: Readonly<Record<string, string>>) =>
      new Promise<string>((resolve) => {
        const child = world.spawn(["github", "check"], { env: { ...world.env, ...env } as NodeJS.ProcessEnv });
        let said = "";
        child.stdout?.on("data", (part) => (said += part));
        child.on("close", () => resolve(said));
      });
    expect(await run({})).toContain("has a certificate that is not trusted here");
    expect(await run({ NODE_EXTRA_CA_CERTS: town.trustFile })).toContain("Tokens can be had.");
  });
});
