import { BlockList, isIP } from "node:net";

/** One word of NO_PROXY: a name and all below it, an address or a network; at one port, or at all of them. */
interface Exception {
  readonly matches: (host: string) => boolean;
  readonly port: number | null;
}

export interface Exceptions {
  /** As they were written. */
  readonly words: readonly string[];
  readonly list: readonly Exception[];
}

/** The words of NO_PROXY. One that means nothing excepts nothing. */
export function readExceptions(written: string): Exceptions {
  const words = written.split(/[\s,]+/).filter((word) => word !== "");
  return { words, list: words.flatMap((word) => readException(word) ?? []) };
}

/** Whether a host, a name in lower case or an address, is reached without the proxy. */
export function isException({ list }: Exceptions, host: string, port: number): boolean {
  return isOwn(host) || list.some((one) => (one.port === null || one.port === port) && one.matches(host));
}

/** No proxy is asked for what is on this machine: there it would be another one. */
function isOwn(host: string): boolean {
  return /^(?:.+\.)?localhost$/.test(host) || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function readException(word: string): Exception | null {
  if (word === "*") return { matches: () => true, port: null };
  // More than one colon, and no brackets: an address alone.
  const [, six, plain, digits] = /^(?:\[(.+)\]|([^:]*))(?::(\d+))?$/.exec(word) ?? [];
  const target = (six ?? plain ?? word).toLowerCase();
  const matches = readNetwork(target) ?? readName(target);
  return matches === null ? null : { matches, port: digits === undefined ? null : Number(digits) };
}

function readNetwork(target: string): Exception["matches"] | null {
  const [, base = "", bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(target) ?? [];
  const version = isIP(base);
  const length = version === 6 ? 128 : 32;
  const kept = bits === undefined ? length : Number(bits);
  if (version === 0 || kept > length) return null;
  const family = version === 6 ? "ipv6" : "ipv4";
  const network = new BlockList();
  network.addSubnet(base, kept, family);
  return (host) => isIP(host) === version && network.check(host, family);
}

/** `example.org`, `.example.org` and `*.example.org` mean the same, as to curl: the name and all below it. */
function readName(target: string): Exception["matches"] | null {
  const name = target.replace(/^\*?\./, "").replace(/\.$/, "");
  // No part of an address is a name.
  return /[^a-z0-9._-]|^$/.test(name) ? null : (host) => isIP(host) === 0 && `.${host}`.endsWith(`.${name}`);
}
