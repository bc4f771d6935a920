import { describe, expect, test } from "vitest";
import { agents } from "../../src/agents/table.ts";
import { readImageSources } from "../../src/image/context.ts";
import { type ContextFile, inputsHash, labelNames, labelsFor, makeRecipe, versionsIn } from "../../src/image/recipe.ts";
import { describeImage } from "../../src/image/show.ts";
import { notablePackages } from "../../src/image/software.ts";
import { demoAgent } from "./demo.ts";

const file = (name: string, content: string, mode = 0o644): ContextFile => ({
  name,
  mode,
  content: Buffer.from(content),
});

describe("a recipe", () => {
  test("has a layer for each agent, which asks it for its version", () => {
    const needy = {
      ...demoAgent("needy"),
      package: { name: "@x/needy", version: "1.2.3", scripts: true, debian: ["a", "b"] },
    };
    const { containerfile } = makeRecipe("FROM base\n\n", [], [demoAgent("demo"), needy], "x64");
    expect(containerfile).toBe(
      [
        "FROM base",
        "",
        "# The demo",
        "RUN sh /usr/local/lib/podbot/install-agent @x/demo@1.0.0 -- demo --version",
        "",
        "# The needy",
        "RUN sh /usr/local/lib/podbot/install-agent @x/needy@1.2.3 --scripts --debian a --debian b -- needy --version",
        "",
      ].join("\n"),
    );
  });

  test("does not install again what an earlier layer has, and says what that is", () => {
    const adapter = { ...demoAgent("adapter"), uses: { variable: "DEMO_PATH", program: "demo" } };
    expect(makeRecipe("", [], [adapter], "x64").containerfile).toContain(
      "install-agent @x/adapter@1.0.0 --uses DEMO_PATH=demo -- adapter --version\n",
    );
  });

  test("quotes what a shell would read otherwise", () => {
    const odd = { ...demoAgent("odd"), version: ["-c", "it's $HOME"] };
    expect(makeRecipe("", [], [odd], "x64").containerfile).toContain(`-- odd -c 'it'\\''s $HOME'`);
  });

  test.each([
    ["x64", "@x/bin-linux-x64"],
    ["arm64", "@x/bin-linux-arm64"],
  ])("takes packages for one architecture for %s", (arch, name) => {
    const native = { ...demoAgent("native"), package: { ...demoAgent("native").package, name: "@x/bin-linux-x64" } };
    expect(makeRecipe("", [], [native], arch).agents[0]?.package.name).toBe(name);
  });

  test("has its own text in the context, before the files", () => {
    const { context } = makeRecipe("FROM base", [file("a", "1")], [], "x64");
    expect(context.map(({ name, content }) => [name, content.toString()])).toEqual([
      ["Containerfile", "FROM base\n"],
      ["a", "1"],
    ]);
  });
});

describe("the hash of all that goes in", () => {
  const hash = (template: string, files: readonly ContextFile[], names: readonly string[], base: string) =>
    inputsHash(makeRecipe(template, files, names.map(demoAgent), "x64"), base);
  const usual = hash("t", [file("a", "1")], ["demo"], "base");

  test("is the same for the same", () => {
    expect(hash("t", [file("a", "1")], ["demo"], "base")).toBe(usual);
    expect(usual).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each([
    ["the text", hash("u", [file("a", "1")], ["demo"], "base")],
    ["a file", hash("t", [file("a", "2")], ["demo"], "base")],
    ["a file's name", hash("t", [file("b", "1")], ["demo"], "base")],
    ["a file's mode", hash("t", [file("a", "1", 0o755)], ["demo"], "base")],
    ["an agent", hash("t", [file("a", "1")], ["demo", "other"], "base")],
    ["the base", hash("t", [file("a", "1")], ["demo"], "another")],
  ])("is another for another: %s", (_what, other) => {
    expect(other).not.toBe(usual);
  });
});

describe("labels", () => {
  test("say what went in, and are read again", () => {
    const recipe = makeRecipe("", [], [demoAgent("demo")], "x64");
    const labels = labelsFor(recipe, { inputs: "i", base: "b", software: { git: "1:2" } });
    expect(labels).toEqual({
      "org.podbot.inputs": "i",
      "org.podbot.base": "b",
      "org.podbot.agents": '{"demo":"1.0.0"}',
      "org.podbot.software": '{"git":"1:2"}',
    });
    const image = { id: "sha256:1", size: 5, labels, env: [], user: "", workingDir: "", volumes: [] };
    expect(describeImage("t", { ...image, entrypoint: [], cmd: [], architecture: "" })).toEqual({
      tag: "t",
      id: "1",
      size: 5,
      base: "b",
      inputs: "i",
      agents: { demo: "1.0.0" },
      software: { git: "1:2" },
    });
    expect(describeImage("t", { ...image, labels: {}, entrypoint: [], cmd: [], architecture: "" })).toMatchObject({
      base: null,
      inputs: null,
      agents: {},
      software: {},
    });
  });

  test.each(["no JSON", "null", "7", '"text"', '{"a":1}', undefined])("that say %j say nothing", (label) => {
    expect(versionsIn(label)).toEqual({});
  });

  test("have names of their own", () => {
    expect(Object.values(labelNames).every((name) => name.startsWith("org.podbot."))).toBe(true);
  });
});

describe("what this installation has for images", () => {
  const { template, files } = readImageSources();

  test("are the text and its files, each open to all", () => {
    expect(files.map(({ name, mode }) => [name, mode.toString(8)])).toEqual([
      ["build/add-user", "755"],
      ["build/install-agent", "755"],
      ["build/install-npm", "755"],
      ["build/install-packages", "755"],
      ["root/etc/containers/containers.conf", "644"],
      ["root/etc/containers/storage.conf", "644"],
      ["root/usr/local/bin/git-askpass", "755"],
    ]);
  });

  test("installs every package that is told of", () => {
    const [, list = ""] = /install-packages \\\n((?:.*\\\n)*.*)\n/.exec(template) ?? [];
    expect(list.split(/[\s\\]+/)).toEqual(expect.arrayContaining([...notablePackages]));
  });

  test("makes a layer of every known agent", () => {
    const { containerfile } = makeRecipe(template, files, agents, "x64");
    for (const { package: own, program } of agents) {
      expect(containerfile).toMatch(new RegExp(`install-agent ${own.name}@${own.version} .*-- ${program} `));
    }
  });
});
