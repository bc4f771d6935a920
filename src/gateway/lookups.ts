import { bounds } from "./limits.ts";

/** What is not known is not asked for again for so long: it can take long to find out. */
const unknownForMs = 300_000;

/**
 * Names of the world, looked up by turns. A box that asks for many which nobody answers for waits for itself alone, and
 * keeps nobody from ending.
 */
export class Lookups {
  readonly #resolve: (host: string) => Promise<readonly string[]>;
  readonly #waiting = new Set<() => void>();
  readonly #unknown = new Map<string, number>();
  #running = 0;

  constructor(resolve: (host: string) => Promise<readonly string[]>) {
    this.#resolve = resolve;
  }

  /** Its addresses, one at least. */
  find(host: string, withinMs: number): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        this.#waiting.delete(begin);
        this.#ask(host)
          .then(resolve, reject)
          .finally(() => clearTimeout(timer));
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(begin);
        reject(new Error("nobody answered in time"));
      }, withinMs);
      if (this.#running < bounds.lookupsAtOnce) begin();
      else if (this.#waiting.size < bounds.lookupsWaiting) this.#waiting.add(begin);
      else {
        clearTimeout(timer);
        reject(new Error("too many names are asked for at once"));
      }
    });
  }

  /** Whether that was the answer. Not to have been answered in time is none: whoever can be slow could be anybody. */
  isUnknown(host: string): boolean {
    return (this.#unknown.get(host) ?? 0) > performance.now();
  }

  async #ask(host: string): Promise<readonly string[]> {
    this.#running++;
    try {
      const addresses = await this.#resolve(host);
      if (addresses.length === 0) throw new Error("it has no address");
      this.#unknown.delete(host);
      return addresses;
    } catch (error) {
      if (this.#unknown.size >= bounds.lookupsUnknown) this.#unknown.clear();
      this.#unknown.set(host, performance.now() + unknownForMs);
      throw error;
    } finally {
      this.#running--;
      for (const next of this.#waiting) {
        next();
        break;
      }
    }
  }
}
