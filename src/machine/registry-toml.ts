import { parse } from "smol-toml";

/** What a file of settings says; nothing where it cannot be read. */
export function readToml(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text);
  } catch {
    return {};
  }
}
