import { randomBytes } from "node:crypto";
import type { Config, Layer, SecretSource } from "../config/types.ts";
import { ConfigError } from "../errors.ts";
import type { MaskedSecret } from "../gateway/masking.ts";
import { plainNeedles, Scrubber, type Swap, textScrubber } from "../gateway/scrub.ts";
import { makeSurrogate, type Randomness } from "../gateway/surrogate.ts";
import type { SecretBinding } from "../policy/network.ts";
import { type Outside, type Reading, readSecret } from "./secret-source.ts";

/** Where a secret is put in that names no headers. */
const usualHeaders = ["authorization", "x-api-key"];

/** Less than this stands in any text by chance. */
const shortestRedacted = 4;

const shortestRegistered = 8;

export interface Redactor {
  /** What can be shown by now. */
  push(bytes: Buffer): Buffer;
  /** What was held back, at the end. */
  flush(): Buffer;
}

/**
 * The secrets of one session. Each is read once, and only if something asks for it; whoever asks is given a surrogate
 * where the secret is masked. Nothing of it is ever written down.
 */
export class SecretPool {
  readonly #secrets: Config["secrets"];
  readonly #outside: Outside;
  readonly #random: Randomness;
  readonly #readings = new Map<string, Reading>();
  readonly #surrogates = new Map<string, string>();
  readonly #added: MaskedSecret[] = [];
  readonly #values = new Set<string>();
  readonly #renewed = new Map<string, MaskedSecret>();
  /** Made anew when there are more values. */
  #redaction: { readonly known: number; readonly redact: (text: string) => string } | undefined;
  #configured: readonly MaskedSecret[] | undefined;
  /** All of them, until one is added. Who looks at it again knows by it whether anything has changed. */
  #masked: readonly MaskedSecret[] | undefined;

  constructor(secrets: Config["secrets"], outside: Outside, random: Randomness) {
    this.#secrets = secrets;
    this.#outside = outside;
    this.#random = random;
  }

  /** What the gateway puts in and turns back. Grows where files with credentials are masked: ask for it anew. */
  get masked(): readonly MaskedSecret[] {
    this.#configured ??= Object.keys(this.#secrets).flatMap((name) => this.#bind(name));
    this.#masked ??= [...this.#configured, ...this.#added, ...this.#renewed.values()];
    return this.#masked;
  }

  /** What a variable that refers to a secret holds inside; undefined where it may be missing and is. */
  valueFor(name: string, optional: boolean): string | undefined {
    const reading = this.#read(name);
    if ("value" in reading) {
      const { value } = reading;
      return this.#secrets[name]?.hosts === undefined ? value : this.#surrogateOf(value, name);
    }
    if (optional) return undefined;
    throw new ConfigError("SECRET_MISSING", `The secret ${JSON.stringify(name)} has no value: ${reading.missing}.`, {
      hint: `Give it a value, or write "!secret? ${name}" if it may be absent.`,
      details: { secret: name },
    });
  }

  /** Masks a value that was found elsewhere, as in a file with credentials. Gives its surrogate. */
  mask(real: string, binding: SecretBinding): string {
    const surrogate = this.#surrogateOf(real, binding.name);
    this.#values.add(real);
    const isKnown = this.#added.some((known) => known.real === real && known.name === binding.name);
    if (!isKnown) {
      this.#added.push({ ...binding, real, surrogate });
      this.#masked = undefined;
    }
    return surrogate;
  }

  /**
   * The same for a value that is replaced from time to time: the surrogate stays, as long as it can stand in for the new
   * one, and from now on the new one is put in for it, and for those before it: a program may have read one of these.
   */
  renew(real: string, binding: SecretBinding): string {
    const known = this.#renewed.get(binding.name);
    const given = known === undefined ? [] : [known.surrogate, ...(known.earlier ?? [])];
    // What was announced as an answer's length stays true only where both are as long.
    const surrogate = given.find(({ length }) => length === real.length) ?? this.#surrogateOf(real, binding.name);
    const earlier = given.filter((other) => other !== surrogate);
    this.#values.add(real);
    this.#renewed.set(binding.name, { ...binding, real, surrogate, ...(earlier.length === 0 ? {} : { earlier }) });
    this.#masked = undefined;
    return surrogate;
  }

  /** The same text with surrogates for what is masked, by whatever way it has got there. */
  hide(text: string): string {
    return textScrubber(this.masked)(text);
  }

  /** A value that is no secret of the configuration's, and must not be shown either. Short ones are mere words. */
  register(value: string): void {
    if (value.length >= shortestRegistered) this.#values.add(value);
  }

  /** For everything that is shown or kept: logs, events, messages, audits. */
  redact(text: string): string {
    if (this.#redaction?.known !== this.#values.size) {
      this.#redaction = { known: this.#values.size, redact: redaction([...this.#values]) };
    }
    return this.#redaction.redact(text);
  }

  /** The same for a stream of bytes, as of what a program prints, with what is registered by the time it comes. */
  redactor(): Redactor {
    let known = this.#values.size;
    let scrubber = new Scrubber(plainNeedles(redactions([...this.#values])));
    return {
      push: (bytes) => {
        if (this.#values.size === known) return scrubber.push(bytes);
        known = this.#values.size;
        // What it has held back may be the beginning of a value that is known to the next one as well.
        const held = scrubber.release();
        scrubber = new Scrubber(plainNeedles(redactions([...this.#values])));
        return scrubber.push(Buffer.concat([held, bytes]));
      },
      flush: () => scrubber.flush(),
    };
  }

  /** A secret that has no value still keeps others out of where it belongs. */
  #bind(name: string): readonly MaskedSecret[] {
    const { hosts, headers = usualHeaders, paths = null } = this.#secrets[name] as SecretSource;
    if (hosts === undefined) return [];
    const lower = (words: readonly string[]) => words.map((word) => word.toLowerCase());
    const binding = { name, hosts: lower(hosts), headers: lower(headers), paths };
    const reading = this.#read(name);
    if ("missing" in reading) return [{ ...binding, real: "", surrogate: "" }];
    return [{ ...binding, real: reading.value, surrogate: this.#surrogateOf(reading.value, name) }];
  }

  #read(name: string): Reading {
    const known = this.#readings.get(name);
    if (known !== undefined) return known;
    const reading = readSecret(this.#secrets[name], this.#outside);
    this.#readings.set(name, reading);
    if ("value" in reading) this.#values.add(reading.value);
    return reading;
  }

  /** One for each value, by whatever names it goes. */
  #surrogateOf(real: string, name: string): string {
    const known = this.#surrogates.get(real);
    if (known !== undefined) return known;
    const surrogate = makeSurrogate(real, this.#random, `The secret ${JSON.stringify(name)}`);
    this.#surrogates.set(real, surrogate);
    return surrogate;
  }
}

export function openSecrets(
  { secrets }: Pick<Config, "secrets">,
  outside: Outside,
  // Not `randomBytes` itself: who names it has it loaded, and most sandboxes have no secret.
  random: Randomness = (bytes) => randomBytes(bytes),
): SecretPool {
  return new SecretPool(secrets, outside, random);
}

export function redact(text: string, values: readonly string[]): string {
  return redaction(values)(text);
}

/** The longest first, since one value may be part of another; in any case, which names of hosts lose on their way. */
function redaction(values: readonly string[]): (text: string) => string {
  const reals = redactions(values).map(({ real }) => real);
  if (reals.length === 0) return (text) => text;
  const longestFirst = reals.toSorted((one, other) => other.length - one.length);
  const pattern = new RegExp(longestFirst.map((real) => real.replace(/\W/g, "\\$&")).join("|"), "gi");
  return (text) => text.replace(pattern, "[REDACTED]");
}

function redactions(values: readonly string[]): readonly Swap[] {
  const long = values.filter(({ length }) => length >= shortestRedacted);
  return long.flatMap(spellings).map((real) => ({ real, surrogate: "[REDACTED]" }));
}

/** As it is, and as it stands in JSON and in an address. */
function spellings(value: string): readonly string[] {
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)];
}

/**
 * What to say where a later layer names a secret anew and no hosts for it: the whole entry counts, so what was masked
 * is inside as it is.
 */
export function unmaskedWarnings(layers: readonly Layer[]): readonly string[] {
  const entries = layers.flatMap(({ source, value }) =>
    Object.entries(value.secrets ?? {}).map(([name, { hosts }]) => ({ name, source, isMasked: hosts !== undefined })),
  );
  const names = new Set(entries.map(({ name }) => name));
  return [...names].flatMap((name) => {
    const said = entries.filter((entry) => entry.name === name);
    const last = said.at(-1);
    const masked = said.findLast(({ isMasked }) => isMasked);
    if (last === undefined || masked === undefined || last.isMasked) return [];
    return [
      `The secret ${name} is masked by ${masked.source}, but ${last.source} names it without hosts, and that counts: its real value can be read inside.`,
    ];
  });
}

/** What to say where a secret is masked and there is no gateway to put it in. */
export function maskingWarnings(
  config: Pick<Config, "secrets" | "creds">,
  mode: Config["network"]["mode"],
): readonly string[] {
  if (mode === "allowlist" || mode === "learn") return [];
  const names = Object.entries(config.secrets).flatMap(([name, { hosts }]) => (hosts === undefined ? [] : [name]));
  const nobody = `stays a surrogate inside: with network.mode = "${mode}" nobody puts the real value in.`;
  return [
    ...names.map((name) => `The secret ${name} is masked and ${nobody}`),
    ...(config.creds.mode === "masked" ? [`creds.mode = "masked": the agent's login ${nobody}`] : []),
  ];
}
