import { EngineError } from "../errors.ts";

const remedies: readonly (readonly [RegExp, string])[] = [
  [
    /certificate|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|ssl problem|CERT_/i,
    "Name the authority that signs on this network with SSL_CERT_FILE or NODE_EXTRA_CA_CERTS: the build trusts what these hold.",
  ],
  [
    /could not resolve|temporary failure|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|unable to connect|failed to fetch|no such host/i,
    "The build does not reach its packages. Set HTTPS_PROXY if there is a proxy; --host-network lets the build use this machine's own network.",
  ],
  [/no space left/i, "The engine's disk is full: `podman system prune` or `docker system prune` makes room."],
  [/ETARGET|E404|404 Not Found/i, "The registry does not have this version. Leave the agent out with --agents."],
  [
    /slirp4netns|\/dev\/net\/tun|netavark|CNI/i,
    "The engine cannot give the build a network. --host-network lets it use this machine's own.",
  ],
];

/** What may help, by the words of whoever failed. */
export function remedyFor(words: string): string | undefined {
  return remedies.find(([sign]) => sign.test(words))?.[1];
}

/** What is said of a build that failed: the step, the last words, and what may help. */
export function buildTrouble(
  error: EngineError,
  { step, lines }: { readonly step: string | null; readonly lines: readonly string[] },
): EngineError {
  const words = [...lines, error.message].join("\n");
  const hint = remedyFor(words);
  const where = step === null ? "" : ` at ${step}`;
  const said = [...lines, error.message].map((line) => `    ${line}`).join("\n");
  return new EngineError("IMAGE_BUILD_FAILED", `The image could not be built: it failed${where}.\n${said}`, {
    hint: `${hint ?? "Mend it and build again."} What is finished is kept, and the next build goes on from there.`,
    details: { step, lines, words: error.message },
    cause: error,
  });
}
