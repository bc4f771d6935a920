import { statSync } from "node:fs";
import type { Socket } from "node:net";
import { rootCertificates } from "node:tls";
import type { AuditEntry } from "../gateway/audit.ts";
import { type Authority, makeAuthority } from "../gateway/authority.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { readBundle, writeKeystore } from "../gateway/truststore.ts";
import { followWay, readOwnersFile } from "../machine/owners-file.ts";
import { isWritableInside } from "../plan/access.ts";
import type { Plan } from "../plan/plan.ts";
import type { NetworkPolicy } from "../policy/network.ts";
import { trustPlaces } from "../policy/trust-variables.ts";
import { newSessionId } from "../registry/store.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { Doors } from "../wall/doors.ts";
import type { SessionId, TrustFile } from "../wall/wall.ts";
import { type Audit, openAudit } from "./audit.ts";
import type { SecretPool } from "./secrets.ts";

export interface EgressOptions {
  readonly plan: Plan;
  readonly policy: NetworkPolicy;
  readonly secrets: SecretPool;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly state: string;
  /** Null where there is no session: then the audit goes by an id of its own. */
  readonly id: SessionId | null;
  readonly agent: string;
  /** The owner's proxy; null: none. */
  readonly upstream?: Upstream | null;
  /** Called with each thing that was asked for. */
  readonly onAsked?: ((entry: AuditEntry) => void) | undefined;
}

/** What stands between one box and the world: an authority for its certificates, and a gateway behind its doors. */
export interface Egress extends Disposable {
  /** What the box must be born with. */
  readonly trust: readonly TrustFile[];
  /** Answers at the doors. The gateway itself is loaded when somebody knocks. */
  serve(doors: Doors): void;
  /** What is judged from now on goes by another policy. */
  replacePolicy(policy: NetworkPolicy): void;
}

/** Where systems keep whom they trust. */
const systemBundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

export function prepareEgress(options: EgressOptions): Egress {
  const { plan, env } = options;
  const authority = once(() => makeAuthority(new Date()));
  let policy = options.policy;
  let isClosed = false;
  /** Whether what is asked for cannot be written down: then nothing more is let through until it can. */
  let isBlind = false;
  let gateway: Promise<Gateway> | null = null;
  let audit: Audit | null = null;
  const taken = new Set<Socket>();
  /** Asked anew each time, since a disk may have room again. */
  const canSee = (): boolean => {
    if (isBlind) isBlind = audit?.recover() !== true;
    return !isBlind;
  };
  const open = async (): Promise<Gateway> => {
    const { openGateway } = await import("../gateway/gateway.ts");
    const written = openAudit(options.state, options.id ?? newSessionId(), {
      about: { agent: options.agent, cwd: plan.cwd, mode: policy.learn ? "learn" : "allowlist" },
      onFailure: () => {
        isBlind = true;
        // What goes on behind an open door could not be written down either.
        for (const socket of taken) socket.destroy();
      },
    });
    audit = written;
    return openGateway({
      policy: { ...policy, secrets: options.secrets.masked },
      get secrets() {
        return options.secrets.masked;
      },
      authority: authority(),
      upstream: options.upstream ?? null,
      isBlind: () => !canSee(),
      trustFiles: [...systemBundles, env["SSL_CERT_FILE"], env["NODE_EXTRA_CA_CERTS"]].flatMap((path) =>
        ownersBundle(plan, path),
      ),
      redact: (text) => options.secrets.redact(text),
      ahead: (line) => written.ahead(line),
      audit: (entry) => {
        written.write(entry);
        options.onAsked?.(entry);
      },
    });
  };
  const needed = (): Promise<Gateway> => {
    gateway ??= open();
    return gateway;
  };
  return {
    trust: trustFiles(plan, authority, env),
    serve({ tcp, dns }) {
      for (const [port, server] of tcp) {
        server.on("connection", (socket) => {
          socket.on("error", () => {});
          taken.add(socket);
          socket.on("close", () => taken.delete(socket));
          needed().then(
            (opened) => (isClosed || !canSee() ? socket.destroy() : opened.take(socket, port)),
            // Nobody judges, so nothing passes.
            () => socket.destroy(),
          );
        });
      }
      dns.on("message", (packet, { address, port }) => {
        needed().then(
          (opened) => {
            const reply = isClosed ? null : opened.answer(packet);
            if (reply !== null) dns.send(reply, port, address, () => {});
          },
          () => {},
        );
      });
    },
    replacePolicy(next) {
      policy = next;
      void gateway?.then(
        (opened) => opened.replacePolicy({ ...next, secrets: options.secrets.masked }),
        () => {},
      );
    },
    [Symbol.dispose]() {
      isClosed = true;
      void gateway
        ?.then((opened) => opened[Symbol.dispose]())
        .catch(() => {})
        .finally(() => audit?.[Symbol.dispose]());
    },
  };
}

/** Whom the caller trusts: his own list, else the system's, else Node's; and what he adds for Node. */
function rootsOf(plan: Plan, env: EgressOptions["env"]): { readonly all: Buffer; readonly added: Buffer } {
  const added = readFirst(plan, [env["NODE_EXTRA_CA_CERTS"]]) ?? Buffer.alloc(0);
  const list = readFirst(plan, [env["SSL_CERT_FILE"], ...systemBundles]) ?? Buffer.from(rootCertificates.join("\n"));
  // Many hand Node the system's own list.
  return { all: list.equals(added) ? list : join(list, added), added };
}

/** No list of certificates is larger. */
const largestBundle = 8 * 1024 * 1024;

/** What the agent may write is passed over: a link there would lead to what is hidden inside. */
function readFirst(plan: Plan, paths: readonly (string | undefined)[]): Buffer | null {
  for (const path of paths) {
    if (path === undefined || path === "") continue;
    const file = readOwnersFile(path, (step) => isWritableInside(plan, step), largestBundle);
    if (file.kind !== "owners") continue;
    // The system's is public, and large.
    if (systemBundles.includes(path)) return file.bytes;
    const blocks = certificatesIn(file.bytes.toString("latin1"));
    if (blocks.length > 0) return Buffer.from(blocks.join("\n"));
  }
  return null;
}

/** Whatever else is in the file stays outside: a key, say, beside the certificate that it is for. */
function certificatesIn(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g) ?? [];
}

/** Where a list really lies; none where the agent has a say in that. */
function ownersBundle(plan: Plan, path: string | undefined): readonly string[] {
  if (path === undefined || path === "") return [];
  const way = followWay(path, (step) => isWritableInside(plan, step));
  return way.kind === "owners" && isPlainFile(way.path) ? [way.path] : [];
}

function isPlainFile(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size <= largestBundle;
}

/** Files that may lack the end of their last line. */
function join(...files: readonly Uint8Array[]): Buffer {
  return Buffer.concat(files.flatMap((file) => [file, newline]));
}

const newline = Buffer.from("\n");

/** Made when they are asked for: beside an engine that is at work, they cost nothing. */
function trustFiles(plan: Plan, authority: () => Authority, env: EgressOptions["env"]): readonly TrustFile[] {
  const roots = once(() => rootsOf(plan, env));
  const own = once(() => Buffer.from(authority().certificatePem));
  const bundle = once(() => join(roots().all, own()));
  const bytesFor = (target: string): Uint8Array => {
    if (target === trustPlaces.authority) return join(roots().added, own());
    if (target !== trustPlaces.truststore) return bundle();
    return writeKeystore([...readBundle(roots().all.toString("latin1")), authority().certificateDer]);
  };
  return plan.operations.flatMap(({ kind, target }): readonly TrustFile[] => {
    if (kind !== "trust") return [];
    const bytes = once(() => bytesFor(target));
    return [
      {
        target,
        get bytes() {
          return bytes();
        },
      },
    ];
  });
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
