/**
 * Names and messages may come from a hostile project. What they would do to the terminal is shown instead of done;
 * line breaks and tabs, which our own texts use, stay.
 */
export function visible(text: string, prefix = "\\x"): string {
  return text.replace(unseen, (characters) =>
    [...Array(characters.length).keys()]
      .map((at) => characters.charCodeAt(at))
      .map((code) => (code < 0x100 ? prefix + hexadecimal(code, 2) : `\\u${hexadecimal(code, 4)}`))
      .join(""),
  );
}

/** Control characters; what turns the direction of writing; what has no width; tags. */
const unseen =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\udb40[\udc00-\udfff]/g;

function hexadecimal(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

/** The same for one line of a list, which a line break must not turn into two. */
export function visibleLine(text: string): string {
  return visible(text).replace(/[\t\n]/g, (character) => (character === "\n" ? "\\n" : "\\t"));
}

/** JSON that means the same and plays no tricks either. */
export function visibleJson(value: unknown, indent?: number): string {
  return visible(JSON.stringify(value, null, indent), "\\u00");
}
