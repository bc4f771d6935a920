import { isIP } from "node:net";
import type { Lookups } from "./lookups.ts";

/** For so long a denied name is taken to lead where it did. */
const settledMs = 60_000;

/** Where names lead that a rule denies: a program that dials an address alone, or speaks a protocol without names, may mean them. */
export class DeniedAddresses {
  readonly #lookups: Lookups;
  readonly #known = new Map<string, { readonly addresses: readonly string[]; readonly until: number }>();

  constructor(lookups: Lookups) {
    this.#lookups = lookups;
  }

  /** The host among these that leads to the address; null where none does. Fails where that cannot be found out. */
  async hostAt(address: string, hosts: readonly string[], withinMs: number): Promise<string | null> {
    const all = await Promise.all(hosts.map(async (host) => [host, await this.#addressesOf(host, withinMs)] as const));
    return all.find(([, addresses]) => addresses.includes(address))?.[0] ?? null;
  }

  async #addressesOf(host: string, withinMs: number): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host];
    const known = this.#known.get(host);
    if (known !== undefined && performance.now() < known.until) return known.addresses;
    if (this.#lookups.isUnknown(host)) return [];
    try {
      const addresses = await this.#lookups.find(host, withinMs);
      this.#known.set(host, { addresses, until: performance.now() + settledMs });
      return addresses;
    } catch (error) {
      if (this.#lookups.isUnknown(host)) return [];
      throw error;
    }
  }
}
