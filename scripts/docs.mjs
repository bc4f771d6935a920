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
    const { deniedSyscalls } = await importSource("src/wall/bubblewrap/seccomp.ts");
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

  async presets() {
    const { choosePresets, presetNames, presets } = await importSource("src/policy/presets.ts");
    const groups = presetNames.filter((name) => !presets.some((preset) => preset.name === name));
    const rows = [
      ...presets.map(({ name, about }) => [`\`${name}\``, about]),
      ...groups.map((name) => [`\`${name}\``, membersOf(choosePresets(["!@all", name]))]),
    ];
    return [table(["Preset", "What it does"], rows), ...presets.flatMap(presetSection)].join("\n\n");
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

const accessWords = { rw: "Writable", ro: "Read-only", exclude: "Hidden" };

function presetSection({ name, entries }) {
  if (entries.length === 0) return [];
  const own = entries.filter((entry) => entry.own !== undefined);
  const lines = Object.entries(accessWords).flatMap(([access, word]) => {
    const paths = entries.filter((entry) => entry.access === access && entry.own === undefined);
    return paths.length === 0 ? [] : [`- ${word}: ${inList(paths.map(({ path }) => path))}.`];
  });
  if (own.length > 0) lines.push(`- Writable, but the sandbox's own: ${inList(own.map(({ path }) => path))}.`);
  return [`### ${name}`, lines.join("\n")];
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
