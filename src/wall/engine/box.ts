import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { getArchive, putArchive } from "../../engine/archive.ts";
import type { EngineClient } from "../../engine/client.ts";
import { createContainer, killContainer, removeContainer, startContainer } from "../../engine/containers.ts";
import { containerLogs } from "../../engine/logs.ts";
import { EngineError, SessionError, WallError } from "../../errors.ts";
import { peerOf } from "../../machine/peer.ts";
import { sendSignal } from "../../machine/process.ts";
import { lookAt, type ProcessMark } from "../../machine/process-mark.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import type { ContainerPlan } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Doors } from "../doors.ts";
import { doorsOf } from "../guarded.ts";
import { openPins } from "../pin.ts";
import { gapError } from "../prepare.ts";
import { type Identify, openReception, type Reception } from "../reception.ts";
import type { Box, BoxBirth, Exit } from "../wall.ts";
import { boundsOf } from "./bounds.ts";
import { openContainerDoors } from "./doors.ts";
import { findFirst } from "./first.ts";
import { engineExtras } from "./gaps.ts";
import { laySeccompProfile, layTrust, makeInlet, unwritable, writeBirth } from "./inlet.ts";
import { knownWays } from "./known-ways.ts";
import { refuseLinks } from "./links.ts";
import type { NewContainer } from "./new-container.ts";
import { removeSurely } from "./removal.ts";
import { bindsOf, containerName, expectations, renderContainer } from "./render.ts";

/** How long the engine may take from the start of a container until the warden calls. */
const callMs = 30_000;

/** How long a question takes to get to the engine; only a saving of time. */
const handedOverMs = 2;

/** How long somebody who has called a start off still waits for an engine that does not answer: for both together. */
const patienceMs = 3_000;
const removalMs = 5_000;

export interface BoxOptions {
  readonly client: EngineClient;
  readonly native: NativePrograms;
  readonly seccompProfile?: string | null;
  /** Where it is remembered which paths of an image are no links. */
  readonly imagesDirectory: string;
}

/** Builds a container with the warden in it; resolves when the warden has called and every mount was found right. */
export async function startContainerBox(
  { client, native, imagesDirectory, seccompProfile = null }: BoxOptions,
  plan: Plan,
  container: ContainerPlan,
  filter: Uint8Array,
  labels: Readonly<Record<string, string>>,
  birth: BoxBirth,
): Promise<Box> {
  const place = {
    id: birth.id,
    labels,
    ...makeInlet(plan, container, birth.directory),
    seccompProfile: laySeccompProfile(container, seccompProfile, birth.directory),
  };
  const token = randomBytes(32);
  const identify: Identify = (socket) => peerOf(socket, native);
  const listening = openReception(join(place.inlet, "in", `${birth.id}.sock`), token, identify);
  using reception = disposeUnlessKept(
    await listening.catch((cause: unknown) => {
      throw unwritable(place.inlet, cause);
    }),
  );
  const binds = bindsOf(plan, { ...place, parts: birth.own });
  // The engine takes paths, and some make what is missing: what has changed since the plan is refused before it is
  // asked. What changes after that, the warden finds.
  using pins = openPins(binds);
  const expected = expectations(container, binds, pins.identities);
  const bounds = boundsOf(plan, container);
  using _secret = writeBirth(place.inlet, token, { filter, expected, bounds, env: birth.env });
  const name = containerName(birth.id);
  birth.signal?.throwIfAborted();
  // Called off while the engine is at it, it would make the container after it had been removed: so it is waited for,
  // but not for as long as an engine may hang. What comes into being after that is found by its label.
  const { api, body } = renderContainer(plan, container, place, binds);
  // From here on by its id: the name may be another's.
  const { id } = await createContainer(client, name, body, { api, signal: soonAfter(birth.signal) });
  const over = new AbortController();
  let first: ProcessMark | null = null;
  try {
    birth.signal?.throwIfAborted();
    const known = knownWays(imagesDirectory, container.engine.image.id);
    await refuseLinks(client, { id, name, labels }, plan, container, binds, known, birth.signal);
    await birth.furnish?.({
      put: (tar, path) => putArchive(client, id, path, tar, { name, signal: birth.signal }),
      get: (path) => getArchive(client, id, path, { signal: birth.signal }),
    });
    const started = startContainer(client, id, { signal: over.signal });
    // Who does not come to wait for it need not hear of its failure.
    started.catch(() => {});
    // While the engine is at work: it must have heard what to do first.
    await wait(handedOverMs);
    layTrust(place.inlet, birth.trust ?? []);
    await calledOrFailed(reception.value, started, birth.signal);
    // Where the warden cannot tell (gVisor), what was swapped and not swapped back is seen from here.
    if (expected.length === 0) pins.lookAgain();
    first = await findFirst({ client, container, id, started }, reception.value.caller());
    const made = { client, container, id, name, labels, first, started };
    const ports = doorsOf(plan);
    const doors = ports === null ? null : await openContainerDoors(native, ports, made, birth.directory, birth.signal);
    return new ContainerBox(made, birth.id, reception.keep(), doors);
  } catch (error) {
    const explained = await explain(client, id, error);
    // An answer that nobody waits for any more would keep this process.
    over.abort();
    // A Docker that has died does not even know of it.
    if (first !== null && lookAt(first) !== "dead") sendSignal(first.pid, "SIGKILL");
    // Whatever there is of it must not stay; what cannot be removed now is found by its label.
    await removeContainer(client, id, { timeoutMs: removalMs }).catch(() => {});
    throw explained;
  }
}

class ContainerBox implements Box {
  readonly id: string;
  readonly exited: Promise<Exit>;
  readonly doors: Doors | null;
  readonly #made: NewContainer;
  readonly #reception: Reception;

  constructor(made: NewContainer, id: string, reception: Reception, doors: Doors | null) {
    this.id = id;
    this.doors = doors;
    this.#made = made;
    this.#reception = reception;
    made.started.catch(() => this.#takeBack()).catch(() => {});
    this.exited = this.#watch();
    // Whoever does not wait for the end need not hear of its failure.
    this.exited.catch(() => {});
  }

  connect(signal?: AbortSignal): ReturnType<Box["connect"]> {
    return this.#reception.connect(signal);
  }

  isThere(): boolean {
    return lookAt(this.#made.first) !== "dead";
  }

  /** Kills the first process: the kernel ends all the others with it, and the engine removes what is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { client, id } = this.#made;
    // Another user's, as with a shared Docker: then the engine does it.
    if (this.isThere() && !this.#kill()) await killContainer(client, id, "SIGKILL");
    const ended = this.exited.then(() => true);
    // Whom the owner has paused does not even die: the engine lets it go on, and removes it.
    if (!(await Promise.race([ended, wait(deathMs, false, { ref: false })]))) {
      await removeSurely(client, id, { timeoutMs: removalMs });
    }
    await ended;
  }

  /** Returns false if this user may not kill the process. */
  #kill(): boolean {
    return sendSignal(this.#made.first.pid, "SIGKILL");
  }

  /**
   * Removes a container whose start failed. If its first process ends before the start completes, the engine considers
   * it never started and keeps it. If Docker dies before the start completes, it has not recorded that the container
   * runs: after a restart it deletes the files and the process runs on unmanaged, so Podbot ends the process. Podman
   * records the container and removes it when it ends.
   */
  async #takeBack(): Promise<void> {
    const { client, container, id } = this.#made;
    if (container.engine.flavour === "docker" && this.isThere() && !this.#kill()) {
      // The warden ends itself when it cannot reach Podbot any more.
      this.#reception[Symbol.dispose]();
    }
    await removeSurely(client, id, { timeoutMs: removalMs });
  }

  async #watch(): Promise<Exit> {
    try {
      // While the warden has a connection open it lives; when it has none, its end is near or it dials again.
      while (this.isThere()) {
        if (this.#reception.isOpen())
          await Promise.race([this.#reception.emptied(), wait(lookMs, null, { ref: false })]);
        else await wait(soonMs);
      }
      return { code: 0, killed: false };
    } finally {
      this.#reception[Symbol.dispose]();
      await this.doors?.[Symbol.asyncDispose]();
    }
  }
}

const lookMs = 500;
const soonMs = 2;

/** How long the kernel may take to end all that is in a container. */
const deathMs = 3_000;

/** Aborted a little later than another signal. */
function soonAfter(signal: AbortSignal | undefined): AbortSignal {
  const later = new AbortController();
  const end = () => setTimeout(() => later.abort(signal?.reason), patienceMs).unref();
  signal?.addEventListener("abort", end, { once: true });
  return later.signal;
}

async function calledOrFailed(
  reception: Reception,
  started: Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const late = new AbortController();
  const tooLate = started.then(() => wait(callMs, "late" as const, { signal: late.signal }));
  const aborted = new Promise<never>((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true, signal: late.signal });
  });
  // A start that fails is what matters; one that succeeds says less than the call.
  const failed = started.then(() => new Promise<never>(() => {}));
  // Where it is called off before anybody waits, nobody hears of these.
  for (const unheard of [tooLate, failed]) unheard.catch(() => {});
  try {
    signal?.throwIfAborted();
    if ((await Promise.race([reception.called, failed, tooLate, aborted])) !== "late") return;
    throw new SessionError(
      "BOX_LOST",
      `The container runs, but its first program has not called for ${callMs / 1_000} s.`,
      {
        hint: "The engine must run on this machine. gVisor needs runsc's `--host-uds=open` (`--fsgofer-host-uds` in older ones).",
      },
    );
  } finally {
    late.abort();
  }
}

/** With what the first program has said, where there is anything. */
async function explain(client: EngineClient, id: string, error: unknown): Promise<unknown> {
  if (error instanceof WallError && error.code === "WALL_FAILED") return complained(error.message);
  if (!(error instanceof SessionError) && !(error instanceof EngineError && error.code === "CONTAINER_START_FAILED")) {
    return error;
  }
  const said = (await containerLogs(client, id, { timeoutMs: 2_000 }).catch(() => "")).trim();
  if (said === "") return error;
  const { code, message, hint, details } = error;
  return new EngineError(code, `${message}\n${said}`, {
    ...(hint === undefined ? {} : { hint }),
    details,
    cause: error,
  });
}

/** In the warden's own words. */
function complained(words: string): WallError {
  const [, extras] = /^extra (.*)$/s.exec(words) ?? [];
  if (extras !== undefined) return gapError([engineExtras(extras)]);
  const [, path] = /^mount (.*)$/s.exec(words) ?? [];
  if (path === undefined) {
    return new WallError("WALL_FAILED", `The container's first program could not begin: ${words}.`, {
      hint: "The image or the engine's own restrictions may be in the way; `podbot run --debug` shows the plan.",
    });
  }
  return new WallError("PATH_CHANGED", `What is mounted at ${path} in the container is not what was planned.`, {
    hint: "Nothing was started. The image has a link there (then set workspace.container_path, or build it without), or the path was swapped after it was looked at.",
    details: { path },
  });
}

/** Something that is disposed of at the end of the scope, unless somebody has taken it on. */
function disposeUnlessKept<T extends Disposable>(value: T): Disposable & { readonly value: T; keep(): T } {
  let isKept = false;
  return {
    value,
    keep() {
      isKept = true;
      return value;
    },
    [Symbol.dispose]() {
      if (!isKept) value[Symbol.dispose]();
    },
  };
}
