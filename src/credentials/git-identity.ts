import { execFile } from "node:child_process";

/** As whom the owner commits. */
export interface GitIdentity {
  readonly name: string | null;
  readonly email: string | null;
  /** One sentence for each part that is absent. */
  readonly warnings: readonly string[];
}

export interface GitIdentityRequest {
  /** The host's own git, as an absolute path. */
  readonly git: string;
  /** The caller's environment, of which git sees only what tells it where the owner's configuration is. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ends the asking; the promise is then rejected with its reason. */
  readonly signal?: AbortSignal;
}

type Key = "user.name" | "user.email";

const limits = { timeout: 5_000, killSignal: "SIGKILL", maxBuffer: 4096 } as const;

/** Where git looks for the configuration of the owner and of the system. */
const passed = ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/**
 * Asks the host's git for the owner's name and address. It never sees the workspace, where an agent may have written
 * the configuration: it stands in `/`, and its repository is one that cannot be. So only the owner's and the system's
 * own files count, with what they include; an `includeIf "gitdir:…"` never matches. Any failure is absence.
 */
export async function readGitIdentity(request: GitIdentityRequest): Promise<GitIdentity> {
  const values = await ask(request);
  request.signal?.throwIfAborted();
  const [name, email] = [judge("user.name", values), judge("user.email", values)];
  return { name: name.value, email: email.value, warnings: [...name.warnings, ...email.warnings] };
}

interface Answer {
  readonly value: string | null;
  readonly warnings: readonly string[];
}

/** Both at once, in the order of the files; the last one holds. */
async function ask({ git, env, signal }: GitIdentityRequest): Promise<ReadonlyMap<string, Buffer>> {
  const bytes = await outputOf(git, ["config", "--null", "--get-regexp", "^user\\.(name|email)$"], {
    ...limits,
    cwd: "/",
    env: quietEnvironment(env),
    encoding: "buffer",
    ...(signal === undefined ? {} : { signal }),
  });
  const values = new Map<string, Buffer>();
  for (let at = 0, end = bytes.indexOf(0); end >= 0; at = end + 1, end = bytes.indexOf(0, at)) {
    const entry = bytes.subarray(at, end);
    const line = entry.indexOf("\n");
    // A key without a value has no line of its own for it.
    if (line > 0) values.set(entry.toString("latin1", 0, line), entry.subarray(line + 1));
  }
  return values;
}

function judge(key: Key, values: ReadonlyMap<string, Buffer>): Answer {
  const text = decode(values.get(key) ?? Buffer.alloc(0))?.trim();
  if (text === "") return { value: null, warnings: [`git ${key} is not configured on the host`] };
  // Whatever shows or stores the identity later takes it for one line of text.
  if (text === undefined || /\p{Cc}/u.test(text)) {
    return { value: null, warnings: [`git ${key} on the host is not a line of plain text and was left out`] };
  }
  return { value: text, warnings: [] };
}

function quietEnvironment(env: GitIdentityRequest["env"]): Record<string, string> {
  const kept = passed.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return { ...Object.fromEntries(kept), PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", GIT_DIR: "/dev/null" };
}

/** Empty where the program failed: then it has not answered either. */
function outputOf(
  program: string,
  words: readonly string[],
  options: Parameters<typeof execFile>[2] & { readonly encoding: "buffer" },
): Promise<Buffer> {
  const output = new Promise<Buffer>((done, fail) => {
    execFile(program, words, options, (error, stdout) => (error === null ? done(stdout) : fail(error)));
  });
  return output.catch(() => Buffer.alloc(0));
}

function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** What to run inside, so that commits made there bear the owner's name. */
export function gitIdentityCommands(identity: Pick<GitIdentity, "name" | "email">): readonly (readonly string[])[] {
  const { name, email } = identity;
  // A value that begins with a dash is safe here: git reads no options after the first word that is none.
  return [
    ...(name === null ? [] : [["git", "config", "--global", "user.name", name]]),
    ...(email === null ? [] : [["git", "config", "--global", "user.email", email]]),
  ];
}
