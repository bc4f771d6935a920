/** Long enough to recognise a value, short enough that a hostile file cannot flood the terminal. */
const longest = 60;

/** Controls, and the marks that reorder text on screen: JSON leaves these as they are. */
const invisible = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Text from a file or variable, safe to print: quoted, escaped and cut. */
export function showText(text: string): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return escapeInvisible(JSON.stringify(cut));
}

/** A value of any type in a few words. Never walks into it: how deep it goes is the file's choice. */
export function showValue(value: unknown): string {
  if (typeof value === "string") return showText(value);
  if (Array.isArray(value)) return value.length === 0 ? "[]" : "[…]";
  if (value instanceof Date) return "a date";
  if (isTable(value)) return Object.keys(value).length === 0 ? "{}" : "{…}";
  return showText(String(value)).slice(1, -1);
}

/** A name inside a key: bare where every format would have it bare, quoted otherwise. */
export function showName(name: string): string {
  return /^[A-Za-z0-9_-]{1,64}$/.test(name) ? name : showText(name);
}

/** A file's path. Printed whole, since it must be found, but never with characters that act on the terminal. */
export function showPath(path: string): string {
  const quoted = JSON.stringify(path);
  return quoted === `"${path}"` ? escapeInvisible(path) : escapeInvisible(quoted);
}

/** Values of these keys never enter a message: they are secrets, or stand where people put secrets. */
export function isSecretKey(key: string): boolean {
  return /^(?:environment\.set|secrets|network\.upstream_proxy)(?:\.|$)/.test(key);
}

/** What may be seen of `network.upstream_proxy`, without whoever may use it; null for what is no address of a proxy. */
export function showProxy(setting: string): string | null {
  if (setting === "environment" || setting === "none") return setting;
  if (!/^https?:\/\//i.test(setting) || !URL.canParse(setting)) return null;
  const { protocol, host, pathname, search, hash } = new URL(setting);
  // What stands behind it may be the rest of a password.
  return pathname + search + hash === "/" ? `${protocol}//${host}` : null;
}

/** A table of any format: not a list, not a date. */
export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return Object.prototype.toString.call(value) === "[object Object]";
}

function escapeInvisible(text: string): string {
  return text.replace(invisible, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
