import { agents as knownAgents } from "../agents/table.ts";
import { UsageError } from "../errors.ts";
import type { BuiltImage, ImageEvent } from "../image/build.ts";
import type { ImageDescription } from "../image/show.ts";
import { buildImage, type ImageRequest, showImage } from "../keeper/image.ts";
import { changingLine } from "./changing-line.ts";
import { lastValue, type Parsed } from "./command.ts";
import { untilAttached } from "./interrupt.ts";
import type { Io } from "./io.ts";
import { placeOf } from "./place.ts";
import { warn } from "./plan.ts";
import { visible, visibleJson } from "./visible.ts";

/** `podbot image build` and `podbot image show`. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const [verb] = parsed.words;
  if (verb === "build") return build(parsed, io);
  if (verb === "show") return show(parsed, io);
  throw new UsageError("USAGE", `podbot image: there is no ${verb}.`, {
    hint: "Usage: podbot image build, or podbot image show.",
  });
}

function build(parsed: Parsed, io: Io): Promise<number> {
  return untilAttached(io, async (signal) => {
    const started = performance.now();
    const line = changingLine(io);
    const agents = lastValue(parsed, "agents");
    const base = lastValue(parsed, "base");
    const built = await buildImage({
      ...requestOf(parsed, io),
      ...(agents === undefined ? {} : { agents: namesIn(agents) }),
      ...(base === undefined ? {} : { base }),
      fresh: parsed.switches.has("fresh"),
      hostNetwork: parsed.switches.has("host-network"),
      signal,
      ...(parsed.switches.has("quiet") ? {} : { onEvent: (event) => tell(event, line, io) }),
    }).finally(line.clear);
    const seconds = (performance.now() - started) / 1_000;
    if (parsed.switches.has("json")) io.stdout.write(`${visibleJson({ ...built, seconds }, 2)}\n`);
    else io.stdout.write(visible(`${outcome(built, seconds)}\n`));
    return 0;
  });
}

function tell(event: ImageEvent, line: ReturnType<typeof changingLine>, io: Io): void {
  if (event.kind === "doing") line.show(event.text);
  else if (event.kind === "note") line.say(event.text);
  else if (event.kind === "warning") {
    line.clear();
    warn([event.text], io);
  } else {
    const { number, of, title, cached } = event.step;
    line.show(`${number}/${of} ${title}${cached ? ", as before" : ""}`);
  }
}

function outcome({ tag, size, upToDate, agents }: BuiltImage, seconds: number): string {
  const what = `${tag}, ${bytes(size)}, with ${listOf(agents) || "no agents"}`;
  return upToDate ? `up to date: ${what}` : `built ${what} (${seconds.toFixed(0)} s)`;
}

async function show(parsed: Parsed, io: Io): Promise<number> {
  const image = await showImage(requestOf(parsed, io));
  if (parsed.switches.has("json")) io.stdout.write(`${visibleJson(image, 2)}\n`);
  else io.stdout.write(visible(description(image)));
  return 0;
}

function description({ tag, id, size, base, agents, software }: ImageDescription): string {
  const rows = [
    ["image", tag],
    ["id", id.slice(0, 12)],
    ["size", bytes(size)],
    ["base", base ?? "not known: Podbot has not built it"],
    ["agents", listOf(agents) || "none"],
    ["software", listOf(software) || "not known"],
  ] as const;
  return rows.map(([name, value]) => `${name.padEnd(8)}  ${value}\n`).join("");
}

function requestOf(parsed: Parsed, io: Io): ImageRequest {
  const { cwd, env } = placeOf(parsed, io);
  const tag = lastValue(parsed, "tag");
  const configFile = lastValue(parsed, "config");
  const socket = lastValue(parsed, "engine-socket");
  return {
    cwd,
    env,
    ...(tag === undefined ? {} : { tag }),
    ...(configFile === undefined ? {} : { configFile }),
    ...(socket === undefined ? {} : { config: { engine_socket: socket } }),
  };
}

function namesIn(list: string): readonly string[] {
  if (list === "all") return knownAgents.map(({ name }) => name);
  if (list === "none") return [];
  return list.split(",").map((name) => name.trim());
}

function listOf(versions: Readonly<Record<string, string>>): string {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
}

/** As disks are sold: in thousands. */
function bytes(size: number): string {
  return size < 1e9 ? `${Math.round(size / 1e6)} MB` : `${(size / 1e9).toFixed(2)} GB`;
}
