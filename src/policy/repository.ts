import { PolicyError } from "../errors.ts";

/** A repository as GitHub names it. */
export interface RepositoryName {
  readonly owner: string;
  readonly name: string;
}

/** Letters of an account's name. Underscores are those of accounts that a company manages. */
const ownerPattern = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,38}$/;
const namePattern = /^[A-Za-z0-9._][A-Za-z0-9._-]{0,99}$/;

/**
 * Reads `owner/name`. What stands here becomes part of an address, of a path and of an argument list, so that nothing
 * is let through that means something in one of these. GitHub gives no repository a name that ends in `.git`, so one
 * such ending, as in an address that was copied, is left out.
 */
export function parseRepository(written: string): RepositoryName {
  const [owner = "", full = "", ...rest] = written.split("/");
  if (written.includes("://") || /^[^/]*@/.test(written)) throw invalid(written, "it is an address");
  if (owner === "" || full === "" || rest.length > 0) throw invalid(written, "it is not an owner and a name");
  const name = full.replace(/\.git$/, "");
  const mistake = mistakeIn({ owner, name });
  if (mistake !== null) throw invalid(written, mistake);
  return { owner, name };
}

function mistakeIn({ owner, name }: RepositoryName): string | null {
  if (!ownerPattern.test(owner)) return "GitHub has no owners of such a name";
  return !namePattern.test(name) || /^\.\.?$|\.git$/i.test(name) ? "GitHub has no repositories of such a name" : null;
}

/** As GitHub names it. */
export function repositoryText({ owner, name }: RepositoryName): string {
  return `${owner}/${name}`;
}

/** `git@github.com:OWNER/NAME`, as ssh is written without a scheme. */
const shortSsh = /^(?:[^/@:]+@)?([^/@:]+):(?!\/\/)\/?/;

/**
 * The repository that a remote's address names on a host; null where it names none there. In such an address there may
 * be a password, so nothing of it is ever told.
 */
export function repositoryAt(address: string, host: string): RepositoryName | null {
  const full = address.replace(shortSsh, "ssh://$1/");
  const { protocol, hostname, host: place, pathname, search, hash } = new URL(URL.canParse(full) ? full : "none:");
  // Ssh has ports of its own.
  const isThere =
    protocol === "ssh:"
      ? hostname.toLowerCase() === host.replace(/:\d+$/, "")
      : /^https?:$/.test(protocol) && place === host;
  const [, owner = "", name = ""] = /^\/([^/]+)\/([^/]+?)(?:\.git)?\/?$/.exec(pathname) ?? [];
  const isNamed = `${search}${hash}` === "" && mistakeIn({ owner, name }) === null;
  return isThere && isNamed ? { owner, name } : null;
}

function invalid(written: string, why: string): PolicyError {
  return new PolicyError("REPOSITORY_INVALID", `${JSON.stringify(written)} does not name a repository: ${why}.`, {
    hint: "Write OWNER/NAME, as in octocat/hello-world.",
    details: { repository: written },
  });
}

/** With `refs/heads/` before it, a name must fit into 255 bytes: that is where GitHub and filesystems end. */
const longestBranch = 244;

/** What git refuses in any part of a name: control characters, and signs that mean something in a revision. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const forbidden = /[\u0000-\u0020\u007f~^:?*[\\]|\p{Cs}/u;

/** Reads a branch's name by the rules of `git check-ref-format --branch`, and no expression that only leads to one. */
export function parseBranch(written: string): string {
  const why = branchMistake(written);
  if (why === null) return written;
  throw new PolicyError("REPOSITORY_INVALID", `${JSON.stringify(written)} cannot be a branch: ${why}.`, {
    hint: "Write the branch's name alone, as in main or topic/login.",
    details: { branch: written },
  });
}

function branchMistake(written: string): string | null {
  const parts = written.split("/");
  if (written === "") return "it is empty";
  if (Buffer.byteLength(written) > longestBranch) return `it is longer than ${longestBranch} bytes`;
  if (written.startsWith("-")) return "it would be taken for an option";
  if (forbidden.test(written)) return "it holds a sign that git does not allow";
  if (written === "@" || written === "HEAD") return "git means something else by that";
  if (written.includes("@{") || written.includes("..")) return "it is an expression";
  if (parts.some((part) => part === "")) return "a slash stands where none may";
  if (parts.some((part) => part.startsWith(".") || part.endsWith(".lock"))) return "git keeps such names for itself";
  return written.endsWith(".") ? "it ends in a dot" : null;
}
