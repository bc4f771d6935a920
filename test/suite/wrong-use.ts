import { existsSync } from "node:fs";
import { join } from "node:path";

/** Arguments that make no sense. The message is for the person who typed them. */
export class WrongUse extends Error {}

/** Runs a command's main part. Wrong use is told in one line, with status 2. */
export async function told(work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof WrongUse)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

export function wholeNumber(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new WrongUse(`${name} is a whole number, not ${text}`);
  return Number(text);
}

/** The name, if it is one of those. */
export function oneOf<Name extends string>(what: string, names: readonly Name[], name: string): Name {
  const found = names.find((each) => each === name);
  if (found === undefined) throw new WrongUse(`${what} is ${names.join(", ")}, not ${name}`);
  return found;
}

/** These files and folders, which must exist. */
export function existing(root: string, paths: readonly string[]): readonly string[] {
  const missing = paths.find((path) => !existsSync(join(root, path)));
  if (missing !== undefined) throw new WrongUse(`there is no ${missing}: FILES names files or folders of ${root}`);
  return paths;
}
