// Writes the generated parts of docs/: whatever stands between `<!-- generated: NAME -->` and `<!-- end -->`.
// With --check it writes nothing and fails if a page is not what it would write.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { importSource } from "./import-source.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const parts = {
  async errors() {
    const { errorTable } = await importSource("src/errors.ts");
    const entries = Object.entries(errorTable);
    return entries.map(([code, { exit, about }]) => `## ${code}\n\n${about} Exit status ${exit}.`).join("\n\n");
  },

  async syscalls() {
    const { deniedSyscalls } = await importSource("src/wall/seccomp.ts");
    const rows = new Map();
    for (const { name, when = "", errno, why, allowedWhenNesting } of deniedSyscalls) {
      const rest = [when, errno, allowedWhenNesting ? "allowed" : "denied", why];
      const [names] = rows.get(rest.join()) ?? [[]];
      rows.set(rest.join(), [[...names, `\`${name}\``], ...rest]);
    }
    const lines = [...rows.values()].map(([names, ...rest]) => [names.join(", "), ...rest]);
    return table(["Calls", "When", "Answer", "With nesting", "Why"], lines);
  },

  async cli() {
    const { commands } = await importSource("src/cli/table.ts");
    return commands.map(commandSection).join("\n\n");
  },

  async agents() {
    const { agents } = await importSource("src/agents/table.ts");
    return agents.map(agentSection).join("\n\n");
  },

  async presets() {
    const { choosePresets, presetNames, presets } = await importSource("src/policy/presets.ts");
    const groups = presetNames.filter((name) => !presets.some((preset) => preset.name === name));
    const rows = [
      ...presets.map(({ name, about }) => [`\`${name}\``, about]),
      ...groups.map((name) => [`\`${name}\``, membersOf(choosePresets(["!@all", name]))]),
    ];
    return [table(["Preset", "What it does"], rows), ...presets.flatMap(presetSection)].join("\n\n");
  },

  async networkPresets() {
    const { networkPresets } = await importSource("src/policy/network-presets.ts");
    const rows = networkPresets.map(({ name, about, hosts }) => [
      `\`${name}\``,
      about,
      inList(hosts ?? []) || "those here",
    ]);
    return table(["Preset", "What it allows", "Hosts"], rows);
  },

  async environment() {
    const { passedByDefault } = await importSource("src/policy/environment.ts");
    return `${inList(passedByDefault)}.`;
  },
};

function commandSection({ name, summary, usage, flags, examples }) {
  const rows = flags.map(({ name: flag, short, value, repeatable, about }) => [
    `\`${short === undefined ? "" : `-${short}, `}--${flag}${value === undefined ? "" : ` ${value}`}\``,
    `${about}${repeatable ? " Repeatable." : ""}`,
  ]);
  const lines = examples.map(([command, about]) => (about === "" ? command : `${command}    # ${about}`));
  return [
    `### podbot ${name}`,
    summary,
    `\`\`\`text\n${usage}\n\`\`\``,
    table(["Flag", "Meaning"], rows),
    ...(lines.length === 0 ? [] : [`\`\`\`sh\n${lines.join("\n")}\n\`\`\``]),
  ].join("\n\n");
}

function agentSection({ title, name, program, needs, permissive, quiet, acp, appServer, credentials, keys, ...agent }) {
  const { package: wanted, headless, resume, interactive } = agent;
  const libraries = wanted.debian.map((library) => `\`${library}\``);
  const rows = [
    ["Name, program", `\`${name}\`, \`${program}\``],
    ["Package", `\`${wanted.name}@${wanted.version}\`${wanted.scripts ? ", with its install script" : ""}`],
    ["Needs", [...(needs.node === null ? [] : [`Node ${needs.node}`]), ...libraries].join(", ") || "nothing more"],
    ["Asks for nothing by", inWords([...permissive.flags, ...assignments(permissive.environment)])],
    ["Is kept quiet by", inWords([...quiet.flags, ...assignments(quiet.environment)]) || "its settings alone"],
    ...(interactive.length === 0 ? [] : [["On a terminal", inWords([[program, ...interactive].join(" ")])]]),
    ["One prompt", inWords([[program, ...headless].join(" ").replace("{prompt}", "PROMPT")])],
    ["Goes on with", inWords([[program, ...resume].join(" ")])],
    ["ACP", serverWords(acp)],
    ...(appServer === null ? [] : [["App server", serverWords(appServer)]]),
    ["Login and settings", inList(credentials.map((path) => `~/${path}`))],
    ["Keys", inList(keys)],
    ["Hosts", inList(agent.hosts)],
  ];
  return `### ${title}\n\n${table(["", ""], rows)}`;
}

function serverWords({ program, args, package: wanted }) {
  const command = inWords([[program, ...args].join(" ")]);
  return wanted === null ? command : `${command} of \`${wanted.name}@${wanted.version}\``;
}

function assignments(environment) {
  return Object.entries(environment).map(([name, value]) => `${name}=${value}`);
}

/** Words of a command line, a flag together with its value. */
function inWords(words) {
  return inList(words.join("\n").replaceAll("-c\n", "-c ").split("\n").filter(Boolean));
}

const accessWords = { rw: "Writable", ro: "Read-only", exclude: "Hidden" };

function presetSection({ name, entries }) {
  if (entries.length === 0) return [];
  const lines = Object.entries(accessWords).map(([access, word]) => [
    word,
    entries.filter(({ own, fresh, copied, ...entry }) => entry.access === access && !own && !fresh && !copied),
  ]);
  lines.push(
    ["Writable, but the sandbox's own", entries.filter(({ own }) => own !== undefined)],
    ["Empty and writable, gone afterwards", entries.filter(({ fresh }) => fresh?.covers)],
    ["The same where there is none, for the agent itself", entries.filter(({ fresh }) => fresh && !fresh.covers)],
    ["A copy in one of these", entries.filter(({ copied }) => copied)],
  );
  const filled = lines.filter(([, found]) => found.length > 0);
  return [
    `### ${name}`,
    filled.map(([word, found]) => `- ${word}: ${inList(found.map(({ path }) => path))}.`).join("\n"),
  ];
}

function membersOf(presets) {
  return `${inList(presets.map(({ name }) => name))}, all at once.`;
}

function inList(words) {
  return words.map((word) => `\`${word}\``).join(", ");
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

async function freshen(page) {
  const marked = /(<!-- generated: (\w+) -->\n).*?(<!-- end -->)/gs;
  let fresh = "";
  let end = 0;
  for (const match of page.matchAll(marked)) {
    const [all, open, part, close] = match;
    fresh += `${page.slice(end, match.index)}${open}\n${await parts[part]()}\n\n${close}`;
    end = match.index + all.length;
  }
  return fresh + page.slice(end);
}

const check = process.argv.includes("--check");
for (const name of await readdir("docs")) {
  if (!name.endsWith(".md")) continue;
  const page = await readFile(`docs/${name}`, "utf8");
  const fresh = await freshen(page);
  if (fresh === page) continue;
  if (check) {
    process.stderr.write(`docs/${name} is out of date: run \`make docs\`\n`);
    process.exitCode = 1;
  } else {
    await writeFile(`docs/${name}`, fresh);
  }
}
