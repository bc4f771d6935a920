import type { Readable } from "node:stream";
import { EngineError } from "../errors.ts";
import type { EngineClient } from "./client.ts";
import type { CallOptions } from "./containers.ts";
import { readReports } from "./report.ts";

export interface BuildRequest extends CallOptions {
  readonly flavour: "podman" | "docker";
  /** A tar with all that the build may copy, its Containerfile among it. */
  readonly context: Readable;
  /** Values of `ARG`s. Those of proxies need none, and are not kept in the image. */
  readonly args: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly tag?: string;
  readonly ulimits: readonly { readonly name: string; readonly soft: number; readonly hard: number }[];
  /** Let steps use the engine's own network, and with it what listens on its loopback. */
  readonly hostNetwork?: boolean;
  /** Take no layer from an earlier build. */
  readonly fresh?: boolean;
  /** What the engine says, as it comes. */
  readonly onSaid: (text: string) => void;
}

/** Builds an image and returns its id. Steps that were built before, of the same, are not built again. */
export async function buildLayers(client: EngineClient, request: BuildRequest): Promise<string> {
  const { flavour, context, args, labels, tag, hostNetwork, fresh, onSaid } = request;
  const isPodman = flavour === "podman";
  const answer = await client.request({
    signal: request.signal,
    timeoutMs: null,
    method: "POST",
    path: "/build",
    // Podman's own, since only there all of its versions understand the limits.
    api: isPodman ? "libpod" : "docker",
    query: {
      dockerfile: "Containerfile",
      rm: true,
      forcerm: true,
      // Without a word about the format, Podman 4 finds no layer that it has built before.
      ...(isPodman ? { layers: true, outputformat: "application/vnd.oci.image.manifest.v1+json" } : {}),
      buildargs: JSON.stringify(args),
      ulimits: JSON.stringify(isPodman ? request.ulimits.map(limitText) : request.ulimits.map(limitBody)),
      ...(labels === undefined ? {} : { labels: JSON.stringify(labels) }),
      ...(tag === undefined ? {} : { t: tag }),
      ...(hostNetwork ? { networkmode: "host" } : {}),
      ...(fresh ? { nocache: true } : {}),
    },
    upload: context,
    refusedAs: "IMAGE_BUILD_FAILED",
  });
  let built: string | null = null;
  for await (const { text, id, error } of readReports(answer)) {
    if (error !== null) throw new EngineError("IMAGE_BUILD_FAILED", error, { details: { words: error } });
    if (text !== "") onSaid(text);
    built = id ?? built;
  }
  request.signal?.throwIfAborted();
  if (built !== null) return built.replace("sha256:", "");
  throw new EngineError("IMAGE_BUILD_FAILED", "The engine ended the build without a word.", {
    hint: "Its log may say why. What was built is kept: the next build goes on from there.",
  });
}

type Limit = BuildRequest["ulimits"][number];

function limitText({ name, soft, hard }: Limit): string {
  return `${name}=${soft}:${hard}`;
}

function limitBody({ name, soft, hard }: Limit): Readonly<Record<string, unknown>> {
  return { Name: name, Soft: soft, Hard: hard };
}
