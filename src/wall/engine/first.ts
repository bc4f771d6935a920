import { inspectContainer } from "../../engine/inspection.ts";
import { WallError } from "../../errors.ts";
import { thisHost } from "../../machine/host.ts";
import { networkOf } from "../../machine/network-namespace.ts";
import type { Peer } from "../../machine/peer.ts";
import { markOf, type ProcessMark } from "../../machine/process-mark.ts";
import { isFirstOfBox, isKin } from "../../machine/processes.ts";
import type { ContainerPlan } from "../../plan/container.ts";
import type { NewContainer } from "./new-container.ts";
import { isGvisor } from "./render.ts";

/**
 * The container's first process out here: the one that has presented the token, in the kernel's own word. Names and
 * arguments anybody can have; and a number that an engine names may be another process's here, or by now.
 */
export async function findFirst(
  made: Pick<NewContainer, "client" | "container" | "id" | "started">,
  caller: Peer | null,
): Promise<ProcessMark> {
  if (caller === null || caller.process === null) throw notFound("its number is unknown here");
  if (isGvisor(made.container)) return findGvisor(made, caller.process);
  const uid = uidOf(made.container);
  if (uid !== null && caller.uid !== uid) throw notFound(`user ${caller.uid} has called, and not user ${uid}`);
  return caller.process;
}

/** Who the warden is out here; null where only the engine knows (users that it maps). */
function uidOf({ engine, user }: ContainerPlan): number | null {
  if (engine.remapped) return null;
  return engine.rootless ? thisHost().uid : user.uid;
}

/**
 * What dials for a program in gVisor is one of gVisor's own processes, and not always the one that holds the others:
 * that is the engine's to name, and it has the same parent.
 */
async function findGvisor(
  { client, id, started }: Pick<NewContainer, "client" | "id" | "started">,
  caller: ProcessMark,
): Promise<ProcessMark> {
  await started;
  const found = await inspectContainer(client, id);
  const first = found === null || found.pid === 0 ? null : markOf(found.pid);
  if (first === null || !isKin(first.pid, caller.pid)) throw notFound("the engine names another process");
  return first;
}

/**
 * Refuses a network that is not the one of the process which the engine names. Where the engine counts processes in
 * another way than this machine, its number says nothing.
 */
export async function confirmNetwork(
  { client, id, first, started }: Pick<NewContainer, "client" | "id" | "first" | "started">,
  network: string,
): Promise<void> {
  await started;
  const named = (await inspectContainer(client, id))?.pid ?? 0;
  if (named === 0 || named === first.pid || !isFirstOfBox(named)) return;
  if (networkOf(named) !== network) throw notFound("the engine names one in another network");
}

function notFound(why: string): WallError {
  return new WallError("WALL_FAILED", `The container's first process cannot be told from others: ${why}.`, {
    hint: "The engine must run on this machine, and Podbot where it sees the engine's processes (`--pid=host` in a container).",
  });
}
