import { levels, names } from "./check-record.ts";
import { keyringEntry } from "./check-secret.ts";
import type { KeyEntry } from "./key-types.ts";
import { keys } from "./keys.ts";
import type { ListItem, RecordEntry, ValueType } from "./value-type.ts";

type Schema = Readonly<Record<string, unknown>>;

/**
 * The table of keys as a JSON Schema, for editors: it completes, explains and marks mistakes while a file is written.
 * Podbot itself never reads it.
 */
export function configJsonSchema(): object {
  const sections = new Map<string, Record<string, Schema>>();
  const properties: Record<string, Schema> = { $schema: { type: "string" } };
  for (const key of keys) {
    if (key.section === undefined) properties[key.leaf] = keySchema(key);
    else sections.set(key.section, { ...sections.get(key.section), [key.leaf]: keySchema(key) });
  }
  for (const [section, members] of sections) properties[section] = sectionSchema(section, members);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Podbot configuration",
    type: "object",
    properties,
    additionalProperties: false,
  };
}

function sectionSchema(section: string, members: Readonly<Record<string, Schema>>): Schema {
  const table = { type: "object", properties: members, additionalProperties: false };
  if (section !== "network") return table;
  return { anyOf: [{ type: "boolean", description: "true is mode open, false is mode none" }, table] };
}

function keySchema(key: KeyEntry): Schema {
  return {
    description: key.about,
    ...(key.default === undefined ? {} : { default: key.default }),
    ...typeSchema(key.type),
  };
}

function typeSchema(type: ValueType): Schema {
  switch (type.kind) {
    case "text":
      return text;
    case "flag":
      return { type: "boolean" };
    case "integer":
      return { type: "integer", minimum: type.min, maximum: Number.MAX_SAFE_INTEGER };
    case "number":
      return { type: "number", minimum: type.min, maximum: type.max };
    case "choice":
      return { enum: type.of };
    case "list":
      return { type: "array", items: items[type.of] };
    case "rules":
      return { type: "array", items: rule };
    case "record":
      return { type: "object", propertyNames: { pattern: names[type.of].grammar.source }, ...entries[type.of] };
  }
}

/** Not blank, and not a reference to a secret. */
const text: Schema = { type: "string", pattern: "^(?!!secret)(?=[\\s\\S]*\\S)[^\\0]*$" };

const items: Readonly<Record<ListItem, Schema>> = {
  text,
  argument: { type: "string", pattern: "^(?!!secret)[^\\0]*$" },
  variable: { type: "string", pattern: "^(?!!secret)(?=.)[^=*\\s\\0]*\\*?$" },
};

const texts: Schema = { type: "array", items: text, minItems: 1 };

const port: Schema = { type: "integer", minimum: 1, maximum: 65_535 };

const rule: Schema = {
  type: "object",
  properties: {
    host: text,
    port,
    ports: { type: "array", items: port, minItems: 1 },
    path: text,
    paths: texts,
    methods: texts,
    deny: { type: "boolean" },
    local: { type: "boolean" },
  },
  additionalProperties: false,
  required: ["host"],
  not: { anyOf: [{ required: ["port", "ports"] }, { required: ["path", "paths"] }] },
};

const script: Schema = { type: "string", pattern: "^(?!!secret|@)(?=[\\s\\S]*\\S)[^\\0]*$" };

const entries: Readonly<Record<RecordEntry, Schema>> = {
  command: {
    properties: { git: { anyOf: [{ type: "boolean" }, { const: "@git" }, script] } },
    additionalProperties: { anyOf: [{ type: "boolean" }, script] },
  },
  variable: {
    additionalProperties: {
      type: "string",
      pattern: "^(?!!secret)[^\\0]*$|^!secret\\??[ \\t]+[A-Za-z0-9_.-]+[ \\t]*$",
    },
  },
  secret: {
    additionalProperties: {
      type: "object",
      properties: {
        env: { type: "string", pattern: "^(?!!secret)[^=*\\s\\0]+$" },
        file: text,
        command: { type: "array", prefixItems: [text], items: items.argument, minItems: 1 },
        keyring: { type: "string", pattern: keyringEntry.source },
        hosts: texts,
        headers: texts,
        paths: texts,
      },
      additionalProperties: false,
      oneOf: ["env", "file", "command", "keyring"].map((source) => ({ required: [source] })),
      dependentRequired: { headers: ["hosts"], paths: ["hosts"] },
    },
  },
  address: { additionalProperties: text },
  permission: { additionalProperties: { enum: levels } },
};
