/**
 * Names and messages may come from a hostile project. What they would do to the terminal is shown instead of done;
 * line breaks and tabs, which our own texts use, stay.
 */
export function visible(text: string, prefix = "\\x"): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `${prefix}${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16)}`;
  });
}
