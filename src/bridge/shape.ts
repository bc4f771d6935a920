import { fold } from "./message.ts";
import { decodeText, type Member, type Scanner, type Span } from "./scanner.ts";

/** Takes the member or item out. */
export const cut = Symbol("cut");

/** What becomes of a value, given as it was spelled: it is cut, or replaced by other JSON, or stays. */
export type Leaf = (json: string) => typeof cut | string | undefined;

/**
 * Mirrors a message down to the values that something is done to. `*` stands for each item of a list, `**` for each
 * member of an object as well, and the empty name for the value itself where it is neither an object nor a list.
 */
export interface Shape {
  readonly [name: string]: Shape | Leaf;
}

export interface Edit extends Span {
  readonly json: string;
  /** The way to the value that was changed, as the shape has it: how a message spells it is up to its writer. */
  readonly path: string;
}

/** One shape for two. Where both have something for the same value, the first is asked before the second. */
export function mergeShapes(first: Shape, second: Shape): Shape {
  const merged: Record<string, Shape | Leaf> = { ...first };
  for (const [name, part] of Object.entries(second)) {
    const other = Object.hasOwn(merged, name) ? merged[name] : undefined;
    if (other === undefined) merged[name] = part;
    else if (typeof other !== "function" && typeof part !== "function") merged[name] = mergeShapes(other, part);
    else if (typeof other === "function" && typeof part === "function")
      merged[name] = (json) => other(json) ?? part(json);
    else throw new Error(`Two shapes do not fit at ${name}.`);
  }
  return merged;
}

const brace = 0x7b;
const bracket = 0x5b;

type Part = Leaf | Pattern;

interface Place {
  readonly part: Part;
  readonly path: string;
}

/** How many spellings are remembered. An honest peer has few; whoever makes up more is looked at each time. */
const mostSpellings = 256;
const longestSpelling = 64;

/** A shape as messages are held against it: by names as `fold` gives them. */
export class Pattern {
  readonly #places = new Map<string, Place>();
  /** By the bytes of a name, so that those which come again and again are folded once. */
  readonly #spellings = new Map<string, Place | null>();
  readonly #items: Place | null;
  readonly #members: Place | null;
  /** For the value itself. */
  readonly own: Part | null;

  constructor(shape: Shape, path = "") {
    for (const [name, part] of Object.entries(shape)) {
      const way = name === "" || name.startsWith("*") ? path : path === "" ? name : `${path}.${name}`;
      const made = typeof part === "function" ? part : new Pattern(part, way);
      this.#places.set(name.startsWith("*") ? name : fold(name), { part: made, path: way });
    }
    this.#members = this.#takeOut("**");
    this.#items = this.#takeOut("*") ?? this.#members;
    this.own = this.#takeOut("")?.part ?? null;
  }

  /** What is said of a child, by its name, which comes as latin1; null for an item of a list. */
  find(name: string | null): Place | null {
    if (name === null) return this.#items;
    const known = this.#spellings.get(name);
    if (known !== undefined) return known;
    const place = this.#places.get(fold(decodeText(name))) ?? this.#members;
    if (name.length <= longestSpelling && this.#spellings.size < mostSpellings) this.#spellings.set(name, place);
    return place;
  }

  #takeOut(name: string): Place | null {
    const place = this.#places.get(name) ?? null;
    this.#places.delete(name);
    return place;
  }
}

/**
 * Adds what is to be changed in the object or list at the span, in order. It was scanned as part of a whole before.
 * False where it has more parts than are looked at.
 */
export function findEdits(scanner: Scanner, span: Span, pattern: Pattern, edits: Edit[]): boolean {
  const first = scanner.byte(span.start);
  if (!isOpening(first)) return true;
  const children: readonly (Span | Member)[] | null =
    span.members ?? (first === brace ? scanner.members(span) : scanner.items(span));
  if (children === null) return false;
  let kept = false;
  for (let index = 0; index < children.length; index += 1) {
    const child = children[index] as Span | Member;
    const place = pattern.find("name" in child ? child.name : null);
    const part = place === null ? null : partFor(place.part, scanner.byte(child.start));
    if (part instanceof Pattern && !findEdits(scanner, child, part, edits)) return false;
    const json = typeof part === "function" ? part(scanner.text(child.start, child.end)) : undefined;
    const { path } = place ?? { path: "" };
    if (json === cut) edits.push({ ...gap(children, index, kept), json: "", path });
    else kept = true;
    if (typeof json === "string") edits.push({ start: child.start, end: child.end, json, path });
  }
  return true;
}

/** A scalar may stand where a shape has an object. */
function partFor(part: Part, first: number): Part | null {
  return part instanceof Pattern && !isOpening(first) ? part.own : part;
}

function isOpening(code: number): boolean {
  return code === brace || code === bracket;
}

/** What must go with a child so that the rest stays a list: the comma before it where one is kept before, else after. */
function gap(children: readonly (Span | Member)[], index: number, kept: boolean): Span {
  const { end } = children[index] as Span;
  if (kept) return { start: (children[index - 1] as Span).end, end };
  const start = beginning(children[index] as Span | Member);
  const next = children[index + 1];
  return { start, end: next === undefined ? end : beginning(next) };
}

function beginning(child: Span | Member): number {
  return "at" in child ? child.at : child.start;
}

/** The bytes from `start` to `end` with all edits made; whatever no edit touches stays as it is. */
export function splice(bytes: Buffer, start: number, end: number, edits: readonly Edit[]): Buffer {
  const pieces: Buffer[] = [];
  let at = start;
  for (const edit of edits) {
    pieces.push(bytes.subarray(at, edit.start), Buffer.from(edit.json, "latin1"));
    at = edit.end;
  }
  pieces.push(bytes.subarray(at, end));
  return Buffer.concat(pieces);
}
