type Schema = Readonly<Record<string, unknown>>;

/** Whether a value satisfies a JSON Schema, for the words that the schema of the configuration uses. Others are an error. */
export function satisfies(schema: Schema, value: unknown): boolean {
  return Object.entries(schema).every(([word, argument]) => {
    const judge = words[word];
    if (judge === undefined) throw new Error(`the schema uses ${word}, which this test does not know`);
    return judge(argument as never, value, schema);
  });
}

const words: Readonly<Record<string, (argument: never, value: unknown, schema: Schema) => boolean>> = {
  $schema: () => true,
  title: () => true,
  description: () => true,
  default: () => true,
  type: (type: string, value) => typeOf(value) === type || (type === "integer" && Number.isInteger(value)),
  enum: (choices: readonly unknown[], value) => choices.includes(value),
  const: (expected: unknown, value) => value === expected,
  minimum: (least: number, value) => typeof value !== "number" || value >= least,
  maximum: (most: number, value) => typeof value !== "number" || value <= most,
  pattern: (pattern: string, value) => typeof value !== "string" || new RegExp(pattern, "u").test(value),
  anyOf: (schemas: readonly Schema[], value) => schemas.some((schema) => satisfies(schema, value)),
  items: (schema: Schema, value, { prefixItems = [] }) =>
    !Array.isArray(value) ||
    value.slice((prefixItems as readonly Schema[]).length).every((item) => satisfies(schema, item)),
  oneOf: (schemas: readonly Schema[], value) => schemas.filter((schema) => satisfies(schema, value)).length === 1,
  not: (schema: Schema, value) => !satisfies(schema, value),
  minItems: (least: number, value) => !Array.isArray(value) || value.length >= least,
  prefixItems: (schemas: readonly Schema[], value) =>
    !Array.isArray(value) || schemas.every((schema, at) => at >= value.length || satisfies(schema, value[at])),
  required: (names: readonly string[], value) => isObject(value) && names.every((name) => Object.hasOwn(value, name)),
  dependentRequired: (needs: Readonly<Record<string, readonly string[]>>, value) =>
    !isObject(value) ||
    Object.entries(needs).every(
      ([name, others]) => !Object.hasOwn(value, name) || others.every((other) => Object.hasOwn(value, other)),
    ),
  propertyNames: (schema: Schema, value) =>
    !isObject(value) || Object.keys(value).every((name) => satisfies(schema, name)),
  properties: (members: Readonly<Record<string, Schema>>, value) =>
    !isObject(value) ||
    Object.entries(value).every(
      ([name, member]) => !Object.hasOwn(members, name) || satisfies(members[name] ?? {}, member),
    ),
  additionalProperties: (schema: Schema | false, value, { properties = {} }) =>
    !isObject(value) ||
    Object.entries(value).every(
      ([name, member]) => Object.hasOwn(properties as object, name) || (schema !== false && satisfies(schema, member)),
    ),
};

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeOf(value) === "object";
}
