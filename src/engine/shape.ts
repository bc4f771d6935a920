/** Engines leave out what is empty, or say null: these read what is there, and something empty otherwise. */
function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown, otherwise = 0): number {
  return typeof value === "number" ? value : otherwise;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function stringsOf(value: unknown): readonly string[] {
  return listOf(value).filter((item) => typeof item === "string");
}

export function labelsOf(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(recordOf(value)).map(([name, label]) => [name, stringOf(label)]));
}
