import type { Readable } from "node:stream";
import { GitHubError, PodbotError } from "../errors.ts";
import type { Plan } from "../plan/plan.ts";
import type { ClonePlan, NetworkPlan } from "../plan/request.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { Settling } from "./planned.ts";

/** Nobody reads more of what git says. */
const mostWords = 16_384;

/** How long looking at what is left may take. */
const lookMs = 10_000;

/**
 * Clones the plan's repository inside the wall, and makes sure that its branch is checked out. All of git's work is done
 * in there: of a repository, its hooks, filters and settings are what whoever has written it wants them to be.
 */
async function cloneRepository(
  sandbox: Sandbox,
  { directory, network }: Plan,
  clone: ClonePlan,
  { redact, signal }: Settling,
  upstream: Upstream | null,
): Promise<void> {
  const { branch, url } = clone;
  const argv = ["git", "clone", "--branch", branch, "--single-branch", url, directory] as const;
  const cloned = await ask(sandbox, argv, "/", signal, await proxyVariables(network, upstream));
  if (cloned.code !== 0) throw failed(clone, { ...cloned, stderr: redact(cloned.stderr) });
  const head = await ask(sandbox, ["git", "-C", directory, "symbolic-ref", "HEAD"], "/", signal);
  if (head.stdout.trim() === `refs/heads/${branch}`) return;
  throw new GitHubError("CLONE_FAILED", `${clone.repository} has no branch ${branch}: what has that name is a tag.`, {
    hint: "Name a branch with --branch.",
    details: { ...clone },
  });
}

/** The same, told to whoever waits for it. */
export async function makeClone(
  sandbox: Sandbox,
  plan: Plan,
  settling: Settling,
  upstream: Upstream | null,
): Promise<void> {
  const { clone } = plan;
  const { report } = settling;
  if (clone === null) return;
  report({ kind: "cloning", clone });
  await cloneRepository(sandbox, plan, clone, settling, upstream).catch((error: unknown) => {
    throw explainMissingGit(error);
  });
  report({ kind: "cloned", clone });
}

/** Behind the gateway git needs none. With an open network it finds its own way, and is told of the proxy for this once. */
async function proxyVariables(
  { mode }: NetworkPlan,
  upstream: Upstream | null,
): Promise<Readonly<Record<string, string>>> {
  if (mode !== "open" || upstream === null) return {};
  return (await import("../upstream/upstream.ts")).variablesFor(upstream);
}

/** What would be lost with the clone, in words for its owner. Asked inside, since the answer comes out of its settings. */
export async function unsavedWork(sandbox: Sandbox, { clone, directory }: Plan): Promise<readonly string[]> {
  if (clone === null) return [];
  const git = ["git", "-C", directory] as const;
  const changed = await ask(sandbox, [...git, "status", "--porcelain"], "/").catch(() => null);
  const commits = await ask(sandbox, [...git, "rev-list", "--count", "--branches", "--not", "--remotes"], "/").catch(
    () => null,
  );
  const files = changed?.code === 0 ? changed.stdout.split("\n").filter((line) => line !== "").length : 0;
  const ahead = commits?.code === 0 ? Number.parseInt(commits.stdout, 10) || 0 : 0;
  const left = [
    ...(files === 0 ? [] : [`changes in ${files === 1 ? "a file" : `${files} files`} that were not committed`]),
    ...(ahead === 0 ? [] : [`${ahead === 1 ? "a commit that was" : `${ahead} commits that were`} not pushed`]),
  ];
  return left.length === 0 ? [] : [`The clone of ${clone.repository} is gone, and with it ${left.join(" and ")}.`];
}

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function ask(
  sandbox: Sandbox,
  argv: readonly [string, ...string[]],
  cwd: string,
  signal?: AbortSignal,
  variables: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const process = await sandbox.exec({
    argv,
    cwd,
    // Of what git says, some is compared.
    env: { LC_ALL: "C", ...variables },
    ...(signal === undefined ? { timeoutMs: lookMs } : { signal }),
  });
  process.stdin.end();
  const [stdout, stderr, { code }] = await Promise.all([
    beginning(process.stdout),
    ending(process.stderr),
    process.exited,
  ]);
  signal?.throwIfAborted();
  return { code, stdout, stderr };
}

async function beginning(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream) if (text.length < mostWords) text += String(chunk);
  return text;
}

/** What went wrong is said last. */
async function ending(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream) text = (text + String(chunk)).slice(-mostWords);
  return text;
}

function failed(clone: ClonePlan, { code, stderr }: Answer): GitHubError {
  const words = wordsOf(stderr);
  const why = words === "" ? `git ended with status ${code}.` : `git says:\n${words}`;
  return new GitHubError("CLONE_FAILED", `${clone.repository} could not be cloned: ${why}`, {
    hint: hintFor(words, clone),
    details: { ...clone, status: code },
  });
}

/** Without what only moves a cursor. The server has a say in it, and so it is shortened. */
function wordsOf(stderr: string): string {
  const lines = stderr.split(/[\r\n]+/).map((line) => line.replace(/\p{Cc}+/gu, " ").trim());
  return lines
    .filter((line) => line !== "" && !line.startsWith("Cloning into"))
    .slice(-8)
    .map((line) => `  ${line.slice(0, 400)}`)
    .join("\n");
}

function hintFor(words: string, { repository, branch }: ClonePlan): string {
  if (/Remote branch .* not found/.test(words)) return `${repository} has no branch ${branch}: name another.`;
  if (/not found|403|Authentication failed|could not read/i.test(words)) {
    return `\`podbot github check\` says whether the App is installed for ${repository} and may read its contents.`;
  }
  return "Nothing of the clone is left. `podbot audit` shows what the network let through and what not.";
}

/** A box without git cannot clone, and git's absence is no fault of the repository's. */
function explainMissingGit(error: unknown): unknown {
  if (!(error instanceof PodbotError) || error.code !== "COMMAND_NOT_FOUND") return error;
  return new GitHubError("CLONE_FAILED", "There is no git inside, so nothing can be cloned.", {
    hint: "Use an image that has git, as `podbot image build` makes, or install git.",
    cause: error,
  });
}
