import { isBelow, parentOf } from "../policy/paths.ts";

/** How a region of the inside looks. `private`: made anew, without anything of the host's. */
export type Look = "private" | "exclude" | "ro" | "rw";

/** What each region inside is, by the deepest mount at or above a path. */
export class Territory {
  readonly #looks = new Map<string, Look>();

  set(path: string, look: Look): void {
    this.#looks.set(path, look);
  }

  /** The region that a path lies in, and where that region begins. */
  at(path: string): { readonly begins: string; readonly look: Look } {
    for (let at = path; ; at = parentOf(at)) {
      const look = this.#looks.get(at);
      if (look !== undefined) return { begins: at, look };
      if (at === "/") return { begins: "/", look: "private" };
    }
  }

  /** Whether what the host has at a path can be seen inside. */
  shows(path: string): boolean {
    const { look } = this.at(path);
    return look === "ro" || look === "rw";
  }

  /** Where regions begin below a path. */
  below(path: string): readonly string[] {
    return [...this.#looks.keys()].filter((begins) => isBelow(begins, path));
  }
}
