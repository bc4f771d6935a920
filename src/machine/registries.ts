import type { RegistryContext, RegistryUrls } from "./registry-files.ts";

export type RegistryKind = "npm" | "pypi" | "crates" | "debian" | "go";

/** Where a package manager fetches from. */
export interface RegistryPlace {
  readonly host: string;
  readonly port: number;
  /** Below which everything lies that it asks for; null where that cannot be said, or nobody could see it. */
  readonly path: string | null;
  /** A registry says so of itself, or the client that is installed; no setting names it. */
  readonly hearsay?: true;
}

export interface RegistryFinding {
  readonly kind: RegistryKind;
  readonly places: readonly RegistryPlace[];
  /** What the owner should know of hosts that are missing; null where none is. */
  readonly lacks: string | null;
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * Where this machine's own package managers fetch from, by their own settings. Podbot knows no registry: where nothing
 * is set, the client that is installed says in its own files which one it uses.
 */
export async function readRegistries(
  kinds: readonly RegistryKind[],
  context: RegistryContext,
): Promise<readonly RegistryFinding[]> {
  const readers = {
    npm: async () => (await import("./registry-npm.ts")).npmUrls(context),
    pypi: async () => (await import("./registry-pypi.ts")).pypiUrls(context),
    crates: async () => (await import("./registry-crates.ts")).cratesUrls(context),
    debian: async () => (await import("./registry-debian.ts")).debianUrls(context),
    go: async () => (await import("./registry-go.ts")).goUrls(context),
  } as const satisfies Record<RegistryKind, () => Promise<RegistryUrls>>;
  const findings = kinds.map(async (kind): Promise<RegistryFinding> => {
    const { urls, hearsay = [], lacks, variables = {} } = await readers[kind]();
    const places = placesOf(urls, hearsay, kind);
    return { kind, places, variables, lacks: places.length === 0 ? (lacks ?? "its settings name no host") : lacks };
  });
  return Promise.all(findings);
}

/** Each once. What is no address of the web, as a directory of this machine, needs no network. */
function placesOf(urls: readonly string[], hearsay: readonly string[], kind: RegistryKind): readonly RegistryPlace[] {
  const places = new Map<string, RegistryPlace>();
  const said = [...urls.map((text) => ({ text })), ...hearsay.map((text) => ({ text, hearsay: true as const }))];
  for (const { text, ...more } of said) {
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") continue;
    const isPlain = url.protocol === "http:";
    const place = {
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? (isPlain ? 80 : 443) : Number(url.port),
      // Only apt asks for nothing beside its sources; and what is encrypted would have to be opened for it.
      path: kind === "debian" && isPlain ? pathBelow(url.pathname) : null,
    };
    const key = JSON.stringify(place);
    // What the owner has written comes first, and holds.
    if (!places.has(key)) places.set(key, { ...place, ...more });
  }
  return [...places.values()];
}

function pathBelow(pathname: string): string | null {
  return /^[\w./~+-]*$/.test(pathname) && !pathname.includes("//") ? `${pathname.replace(/\/$/, "")}/**` : null;
}
