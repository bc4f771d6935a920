import { variableFor } from "../src/config/environment.ts";
import type { KeyEntry } from "../src/config/key-types.ts";
import { keys } from "../src/config/keys.ts";
import type { ListItem, RecordEntry, ValueType } from "../src/config/value-type.ts";

/** Writes anew what stands between `<!-- table: NAME -->` and `<!-- end -->` in docs/configuration.md. */
export function renderConfigDocs(page: string): string {
  return page.replace(
    /(<!-- table: (\w+) -->\n).*?(<!-- end -->)/gs,
    (_, open: string, name: string, close: string) => {
      const render = tables[name];
      if (render === undefined)
        throw new Error(`docs/configuration.md asks for the table ${name}, which does not exist`);
      return `${open}\n${render()}\n\n${close}`;
    },
  );
}

const tables: Readonly<Record<string, () => string>> = {
  /** Every key, one table for each section. */
  keys: () => {
    return [...keysBySection()].map(([title, members]) => `### ${title}\n\n${keyTable(members)}`).join("\n\n");
  },
  /** What a project file cannot do on its own. */
  trust: () =>
    table(
      ["In a project file", "needs trust when it"],
      keys.flatMap(({ name, widens }) => (typeof widens === "string" ? [] : [[`\`${name}\``, widens.why]])),
    ),
};

function keysBySection(): Map<string, KeyEntry[]> {
  const sections = new Map<string, KeyEntry[]>();
  for (const key of keys) sections.set(sectionOf(key), [...(sections.get(sectionOf(key)) ?? []), key]);
  return sections;
}

function sectionOf({ section, name, type }: KeyEntry): string {
  return section ?? (type.kind === "record" ? name : "Top level");
}

function keyTable(members: readonly KeyEntry[]): string {
  return table(
    ["Key", "Type", "Default", "Variable", "Step", "Meaning"],
    members.map((key) => [
      `\`${key.name}\``,
      typeInWords(key.type),
      key.default === undefined ? "—" : `\`${JSON.stringify(key.default)}\``,
      variableInWords(key),
      String(key.step),
      key.about,
    ]),
  );
}

function variableInWords(key: KeyEntry): string {
  const name = variableFor(key);
  return name === undefined ? "—" : `\`${name}\``;
}

function typeInWords(type: ValueType): string {
  switch (type.kind) {
    case "text":
      return "text";
    case "flag":
      return "`true` or `false`";
    case "integer":
      return `whole number from ${type.min}`;
    case "number":
      return `number from ${type.min} to ${type.max}`;
    case "choice":
      return type.of.map((value) => `\`${value}\``).join(", ");
    case "list":
      return listWords[type.of];
    case "record":
      return recordWords[type.of];
    case "rules":
      return "list of tables";
  }
}

const listWords: Readonly<Record<ListItem, string>> = {
  text: "list of text",
  argument: "list of text",
  variable: "list of variable names",
};

const recordWords: Readonly<Record<RecordEntry, string>> = {
  command: "table: command → `true`, `false`, preset or path",
  variable: "table: variable → text or reference",
  secret: "table: name → where it comes from and belongs",
  address: "table: host → address",
  permission: "table: permission → `none`, `read` or `write`",
};

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
