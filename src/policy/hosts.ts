import { matchSteps, type Step } from "./glob.ts";
import { anyPart, partStep } from "./network-globs.ts";

export { matchesPath } from "./network-paths.ts";

const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
const quad = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
/** What some take for part of an address, whatever stands before it: `0x7f.1`, `017700000001`. */
const numeric = /^(?:\d+|0x[0-9a-f]*)$/;

/**
 * The one spelling of a host's name or address: lower case, nothing else. Null for what is spelled oddly, which
 * somebody else may read otherwise: a dot at the end, an address in other numbers than usual, other letters than ASCII.
 */
export function canonicalHost(written: string): string | null {
  if (/[^\x21-\x7e]/.test(written)) return null;
  const host = written.toLowerCase();
  if (host.includes(":")) return isCanonicalSix(host) ? host : null;
  const labels = host.split(".");
  if (host.length > 253 || !labels.every((part) => label.test(part))) return null;
  return numeric.test(labels.at(-1) as string) && !quad.test(host) ? null : host;
}

/** Whether a canonical host is an address, and no name. */
export function isAddress(host: string): boolean {
  return host.includes(":") || quad.test(host);
}

/** Addresses of version 4 have a spelling of their own, by which rules know them: mapped, translated, or tunnelled. */
const four = /^(?:::ffff:|64:ff9b:|2002:)/;

function isCanonicalSix(host: string): boolean {
  const url = `http://[${host}]/`;
  return /^[0-9a-f:]+$/.test(host) && !four.test(host) && URL.canParse(url) && new URL(url).hostname === `[${host}]`;
}

export type HostReading =
  | { readonly kind: "host"; readonly host: string }
  | { readonly kind: "wrong"; readonly wrong: string; readonly wayOut: string };

/**
 * A host as an owner writes it. A label `*` stands for one label, a label `**` for one or more; a star within a label
 * stays in it, and needs two labels behind it, since `*example.org` would be anybody's who registers a name.
 */
export function readHostPattern(written: string): HostReading {
  const pattern = written.toLowerCase();
  if (!pattern.includes("*")) {
    const host = canonicalHost(pattern);
    return host === null ? refuse("is not a host", suggestHost(written)) : { kind: "host", host };
  }
  if (pattern === "**") return { kind: "host", host: pattern };
  const labels = pattern.split(".");
  if (labels.at(-1)?.includes("*")) return refuse("leaves its end open", 'write the end out, or "**" for every name');
  if (labels.filter((part) => part === "**").length > 1) return refuse("has ** twice", "keep one of them");
  const loose = labels.findIndex((part) => part.includes("*") && part !== "*" && part !== "**");
  if (loose >= 0 && labels.length - loose < 3) {
    return refuse("is a name that anybody could register", 'write "*.example.org" for what lies below example.org');
  }
  // With letters in place of its stars it must be a name, and no address.
  const plain = canonicalHost(labels.map((part) => part.replaceAll("*", "x")).join("."));
  if (plain === null || labels.some((part) => part !== "**" && part.includes("**"))) {
    return refuse("is not a pattern of hosts", 'write "*.example.org", or "**.example.org" for any depth');
  }
  return { kind: "host", host: pattern };
}

function refuse(wrong: string, wayOut: string): HostReading {
  return { kind: "wrong", wrong, wayOut };
}

/** What was probably meant, where that can be said. */
function suggestHost(written: string): string {
  const url = `http://${written.replace(/^[a-z]+:\/\//i, "")}`;
  const host = URL.canParse(url) ? canonicalHost(new URL(url).hostname.replace(/^\[|\]$|\.$/g, "")) : null;
  return host === null ? "write a name such as api.example.org" : `did you mean ${host}?`;
}

/** Tests a canonical host, given by its labels. Globs are for names: no address is ever one that they stand for. */
export function hostMatcher(pattern: string): (labels: readonly string[]) => boolean {
  const steps = pattern.split(".").flatMap((part): Step[] => (part === "**" ? [anyPart, "star"] : [partStep(part)]));
  return (labels) => matchSteps(steps, labels);
}

export function matchesHost(pattern: string, host: string): boolean {
  if (pattern === host) return true;
  return pattern.includes("*") && !isAddress(host) && hostMatcher(pattern)(host.split("."));
}

/** A host with or without a port: `name`, `name:port`, `[address]:port`, `address`. Null where the port is none. */
export function splitPort(written: string): { readonly host: string; readonly port: number | null } | null {
  const [all, six, plain, digits] = /^(?:\[([^\]]*:[^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(written) ?? [];
  // More than one colon, and no brackets: an address alone.
  if (all === undefined) return { host: written, port: null };
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65_535 || digits?.startsWith("0"))) return null;
  return { host: (six ?? plain) as string, port };
}
