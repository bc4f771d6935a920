import { randomInt } from "node:crypto";
import { bounds } from "./limits.ts";

/** 198.18.0.0/15 is set apart for tests between networks: nothing that is real has an address in it. */
const size = 1 << 17;
/** The network itself and the name server before the addresses that are given out, the broadcast address after them. */
const before = 2;
const count = size - before - 1;

/** How many addresses are not for such a name. A pattern covers as many names as a box likes, so it has its own. */
function keptFrom(named: "name" | "pattern" | null): number {
  if (named === "name") return 0;
  return bounds.namesKeptForRules + (named === "pattern" ? 0 : bounds.namesKeptForPatterns);
}

/**
 * Gives every name an address of its own, so that a connection says by its address which name was asked for. An
 * address stays with its name for as long as the session lasts: somebody may hold it, and would come to another host.
 */
export class Names {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];
  /** Not the same in two sessions, so that nobody learns to do without asking. */
  readonly #offset: number;

  constructor(offset = randomInt(count)) {
    this.#offset = offset;
  }

  /**
   * `name` is canonical, and `named` is how a rule names it: some addresses are kept for those, so that a box which has
   * asked for all others still reaches what it may. Null where no address is left.
   */
  addressOf(name: string, named: "name" | "pattern" | null = null): string | null {
    const known = this.#numbers.get(name);
    if (known !== undefined) return this.#addressAt(known);
    const number = this.#names.length;
    if (number >= count - keptFrom(named)) return null;
    this.#names.push(name);
    this.#numbers.set(name, number);
    return this.#addressAt(number);
  }

  /** Null for an address that was never given out. */
  nameOf(address: string): string | null {
    const [, upper, high, low] = /^(?:::ffff:)?198\.(18|19)\.(\d{1,3})\.(\d{1,3})$/.exec(address) ?? [];
    if (upper === undefined) return null;
    const place = ((Number(upper) - 18) << 16) + (Number(high) << 8) + Number(low) - before;
    const name = this.#names[(place - this.#offset + count) % count];
    // Whatever is beyond the range, or spelled oddly, comes to the wrong place.
    return name !== undefined && address.endsWith(this.#addressAt(this.#numbers.get(name) as number)) ? name : null;
  }

  #addressAt(number: number): string {
    const place = before + ((number + this.#offset) % count);
    return `198.${18 + (place >> 16)}.${(place >> 8) & 0xff}.${place & 0xff}`;
  }
}
