import { ConfigError } from "../errors.ts";

/** Random bytes, as many as asked for. */
export type Randomness = (bytes: number) => Uint8Array;

/** Fewer places than this could be hit by chance: what is no secret would be taken for one. */
const fewestPlaces = 8;

/** A prefix is kept only where so much follows: what looks like one in a passphrase is half of it. */
const placesBehindPrefix = 16;

/** What stands in a header as it is: neither control characters nor letters that have several encodings. */
const plain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** What programs know a kind of token by. Everybody knows these; of another secret, its beginning is half of it. */
const kinds = [
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glsa_"],
  ...["sk-ant-api03-", "sk-ant-admin01-", "sk-ant-oat01-", "sk-ant-ort01-", "sk-ant-", "sk-proj-", "sk-svcacct-"],
  ...["sk-or-v1-", "sk_live_", "sk_test_", "pk_live_", "pk_test_", "rk_live_", "rk_test_", "whsec_", "gsk_", "xai-"],
  ...[
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "npm_",
    "pypi-",
    "dckr_pat_",
    "shpat_",
    "lin_api_",
  ],
  ...["dop_v1_", "doo_v1_", "dor_v1_", "nvapi-", "tvly-", "figd_", "hvs.", "ya29.", "AKIA", "ASIA", "AIza"],
].sort((a, b) => b.length - a.length);

/** Of others, one short word: `hf_`, `sk-`. */
const shortWord = /^[A-Za-z][A-Za-z0-9]{0,3}[_-]/;

/**
 * Something that looks like the secret and opens nothing: of the same length, with the same kind of character in every
 * place, so that programs that look at a token's shape are content. What is neither letter nor digit stays, and so does
 * a prefix that tells kinds of tokens apart. So the surrogate tells the box the secret's shape, and nothing else of it.
 *
 * Of a signed token (JWT) only the signature is replaced: agents read in it when it expires and whose it is. That much
 * is seen inside; without the signature nobody accepts it.
 */
export function makeSurrogate(real: string, random: Randomness, called = "A secret"): string {
  if (!plain.test(real)) {
    const why = /[\r\n]/.test(real)
      ? "it has several lines"
      : "it holds characters that no header can carry as they are";
    throw unmaskable(called, why);
  }
  const kept = real.slice(0, keptLength(real));
  const rest = real.slice(kept.length);
  if (placesIn(rest) < fewestPlaces) {
    throw unmaskable(called, `it has fewer than ${fewestPlaces} letters and digits that could be replaced`);
  }
  return kept + scramble(rest, random(rest.length));
}

/** What the box knows of a secret by its surrogate: for each place, the characters that may stand there. */
export interface Shape {
  readonly places: readonly string[];
  /** How much it does not know. */
  readonly bits: number;
}

export function shapeOf(real: string): Shape {
  const kept = real.slice(0, keptLength(real));
  const places = [...kept, ...alphabetsOf(real.slice(kept.length))];
  return { places, bits: bitsIn(places) };
}

/** The same of what stands in base64: a letter of it is known where all bytes are that it is made of. */
export function shapeInBase64(places: readonly string[], encoded: string): Shape {
  const isKnown = (at: number) => (places[at]?.length ?? 1) === 1;
  const letters = Array.from(encoded, (letter, at) => {
    const group = Math.floor(at / 4) * 3;
    const bytes = [[0], [0, 1], [1, 2], [2]][at % 4] as readonly number[];
    return bytes.every((byte) => isKnown(group + byte)) ? letter : base64;
  });
  return { places: letters, bits: bitsIn(places) };
}

function bitsIn(places: readonly string[]): number {
  return places.reduce((bits, { length }) => bits + Math.log2(length), 0);
}

function keptLength(real: string): number {
  const signature = signatureOf(real);
  if (signature !== null) return real.length - signature.length;
  const prefix = kinds.find((kind) => real.startsWith(kind)) ?? shortWord.exec(real)?.[0] ?? "";
  return placesIn(real.slice(prefix.length)) >= placesBehindPrefix ? prefix.length : 0;
}

/** Of three parts in base64url, the first of which is the header of a signed token. */
function signatureOf(real: string): string | null {
  const [, header, signature] = /^([\w-]+)\.[\w-]+\.([\w-]+)$/.exec(real) ?? [];
  if (header === undefined || signature === undefined) return null;
  return /^\{.*"alg"/s.test(Buffer.from(header, "base64url").toString("latin1")) ? signature : null;
}

function placesIn(text: string): number {
  return text.match(/[A-Za-z0-9]/g)?.length ?? 0;
}

const digits = "0123456789";
const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const lower = upper.toLowerCase();
const base64 = `${upper}${lower}${digits}+/=`;

/** The letters that each place is drawn from. A hexadecimal number stays one. */
function alphabetsOf(text: string): readonly string[] {
  const isNumber = /^(?:[0-9a-f-]+|[0-9A-F-]+)$/.test(text);
  const letters = (all: string) => (isNumber ? all.slice(0, 6) : all);
  return Array.from(text, (character) => {
    if (/[0-9]/.test(character)) return digits;
    if (/[a-z]/.test(character)) return letters(lower);
    return /[A-Z]/.test(character) ? letters(upper) : character;
  });
}

/** That some letters are likelier than others does no harm: nothing depends on a surrogate's being unguessable. */
function scramble(text: string, bytes: Uint8Array): string {
  const alphabets = alphabetsOf(text);
  const drawn = alphabets.map((alphabet, at) => alphabet[(bytes[at] as number) % alphabet.length] as string);
  if (drawn.join("") !== text) return drawn.join("");
  // As likely as guessing the secret; still, it must not be.
  const at = alphabets.findIndex(({ length }) => length > 1);
  const alphabet = alphabets[at] as string;
  drawn[at] = alphabet[(alphabet.indexOf(text[at] as string) + 1) % alphabet.length] as string;
  return drawn.join("");
}

function unmaskable(called: string, why: string): ConfigError {
  return new ConfigError("SECRET_UNMASKABLE", `${called} cannot be masked: ${why}.`, {
    hint: "Leave out its hosts, so that it is handed in as it is, or use a longer token of one line.",
  });
}
