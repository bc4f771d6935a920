import type { Direction } from "./event.ts";
import { fold } from "./message.ts";
import { type PathLeaves, pathLeaves } from "./paths.ts";
import type { BridgePolicy, Delegation } from "./policy.ts";
import type { Questions } from "./question.ts";
import { decodeText } from "./scanner.ts";
import { cut, type Leaf, mergeShapes, Pattern, type Shape } from "./shape.ts";

/** By the words of a method, in small letters. */
export type Uses = (words: readonly string[]) => boolean;

/** One way in which an agent would act on the client's machine, and all that belongs to it in both directions. */
export interface Reach {
  readonly name: string;
  readonly why: string;
  /** With which delegation the owner lets the agent have it. */
  readonly grantedBy: readonly Delegation[];
  /** Whether a request or notification of the agent's makes use of it. */
  readonly uses: Uses;
  /** With which parameters such a message may pass all the same. */
  readonly excuses?: (params: unknown) => boolean;
  /** What must not be offered to the agent: members of the parameters of `initialize`, and of any other method. */
  readonly initialize?: Shape;
  readonly params?: Shape;
  /** What must not be offered to the client: members of parameters, of a result, and of an error. */
  readonly told?: Shape;
  readonly result?: Shape;
  readonly error?: Shape;
}

/** What of a protocol matters to the bridge, as data. */
export interface Protocol {
  readonly reaches: readonly Reach[];
  /** The requests that an agent may make at all, besides those of a reach that the owner has granted. */
  readonly requests: readonly string[];
  /** With this begin the requests that the protocol leaves to agents and clients; null where it leaves them none. */
  readonly extensionPrefix: string | null;
  readonly questions: Questions;
  /** How the client says that it waits no longer, and the parameter that says in which session. */
  readonly cancel: { readonly method: string; readonly session: string };
  /** Where the protocol has paths, by direction and by member of the message. */
  readonly paths: (leaves: PathLeaves, direction: Direction) => { readonly params: Shape; readonly result: Shape };
}

/** What is done to the messages of one direction. */
export interface Rules {
  readonly denies: (method: string, isRequest: boolean, params: () => unknown) => boolean;
  readonly initialize: Pattern | null;
  readonly params: Pattern | null;
  readonly result: Pattern | null;
  readonly error: Pattern | null;
}

/** The same list of reaches hides what is offered and denies what is asked for: neither can be granted alone. */
export function makeRules(protocol: Protocol, policy: BridgePolicy, direction: Direction): Rules {
  const { reaches, paths } = protocol;
  const closed = reaches.filter(({ grantedBy }) => !grantedBy.includes(policy.delegation));
  const places = policy.paths === null ? null : paths(pathLeaves(policy.paths, direction), direction);
  const shape = (...shapes: readonly (Shape | undefined)[]): Pattern | null => {
    const all = shapes.filter((one) => one !== undefined);
    return all.length === 0 ? null : new Pattern(all.reduce(mergeShapes));
  };
  if (direction === "to-client") {
    return {
      denies: makeDenial(protocol, closed, policy.delegation),
      initialize: null,
      params: shape(...closed.map(({ told }) => told), places?.params),
      result: shape(...closed.map(({ result }) => result), places?.result),
      error: shape(...closed.map(({ error }) => error)),
    };
  }
  const params = [...closed.map((reach) => reach.params), places?.params];
  return {
    denies: () => false,
    initialize: shape(...closed.map(({ initialize }) => initialize), ...params),
    params: shape(...params),
    result: shape(places?.result),
    error: null,
  };
}

/** Cuts whatever promises something: what is false or null promises nothing, and may stay as it is. */
export const cutPromise: Leaf = (json) => (json === "false" || json === "null" ? undefined : cut);

/** How many methods are remembered. No agent needs more; one that makes them up is looked at each time. */
const mostMethods = 256;

function makeDenial(protocol: Protocol, closed: readonly Reach[], delegation: Delegation): Rules["denies"] {
  const isKnown = makeKnowledge(protocol, closed, delegation);
  const reachesOf = new Map<string, readonly Reach[]>();
  const find = (method: string): readonly Reach[] => {
    const words = wordsOf(method);
    const found = closed.filter(({ uses }) => uses(words));
    if (reachesOf.size < mostMethods) reachesOf.set(method, found);
    return found;
  };
  return (method, isRequest, params) => {
    if (isRequest && !isKnown(method)) return true;
    const reaches = reachesOf.get(method) ?? find(method);
    return reaches.length > 0 && reaches.some(({ excuses }) => excuses === undefined || !excuses(params()));
  };
}

/**
 * Which requests an agent may make. A client answers a request by doing something, and what an unknown one has it do is
 * unknown, too. A notification has it do nothing that the protocols know of, and newer agents have newer ones to show.
 */
function makeKnowledge(
  { reaches, requests, extensionPrefix }: Protocol,
  closed: readonly Reach[],
  delegation: Delegation,
): (method: string) => boolean {
  if (delegation === "allow_all") return () => true;
  const listed = new Set(requests);
  const granted = reaches.filter((reach) => !closed.includes(reach));
  return (method) => {
    if (listed.has(method) || (extensionPrefix !== null && method.startsWith(extensionPrefix))) return true;
    return granted.length > 0 && granted.some(({ uses }) => uses(wordsOf(method)));
  };
}

/** Whatever a client may take for what separates the words of a method, and for an ornament around it, is left out. */
export function wordsOf(method: string): readonly string[] {
  return method
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
}

/** More than any value has that is looked at as a whole. */
const longestValue = 1 << 20;
const unread = Symbol("unread");

/** What a value means that was spelled as JSON, given as latin1. It is built as a whole, so it must not be too long. */
export function readValue(latin1: string): unknown {
  return latin1.length > longestValue ? unread : JSON.parse(decodeText(latin1));
}

/** Whether all members of an object are as they must be, by folded name. Nothing is known of what was not read. */
export function everyMember(value: unknown, check: (name: string, value: unknown) => boolean): boolean {
  if (value === unread) return false;
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, part]) => check(fold(name), part));
}

/** What a form asks for may have any name. */
const schemas: ReadonlySet<string> = new Set(["requestedschema", "meta"]);

/** Whether somebody is asked to fill in a form, and nothing else: no page is opened, whatever part of it a client reads. */
export function isForm(params: unknown, modes: ReadonlySet<unknown>): boolean {
  if (params === null) return true;
  if (typeof params !== "object" || Array.isArray(params)) return false;
  return everyMember(params, (name, value) => {
    if (name === "mode") return modes.has(value);
    if (name === "url") return false;
    return schemas.has(name) || typeof value !== "object" || isForm(value, modes);
  });
}
