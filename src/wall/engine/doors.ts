import { thisHost } from "../../machine/host.ts";
import { networkOf } from "../../machine/network-namespace.ts";
import { lookAt, type ProcessMark } from "../../machine/process-mark.ts";
import { argvOf } from "../../machine/processes.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import { type Doors, openDoors } from "../doors.ts";
import { doorsFailure } from "../doors-failure.ts";
import { openByHelper } from "./doors-container.ts";
import { confirmNetwork } from "./first.ts";
import { needsHelper } from "./gaps.ts";
import type { NewContainer } from "./new-container.ts";
import { isGvisor } from "./render.ts";

/** Opens doors in the network of a container, which must be one of its own. */
export async function openContainerDoors(
  native: NativePrograms,
  ports: readonly number[],
  made: NewContainer,
  directory: string,
  signal: AbortSignal | undefined,
): Promise<Doors> {
  const { first, container } = made;
  if (isGvisor(container)) refuseOwnNetwork(first);
  if (needsHelper(container.engine, thisHost().uid)) return openByHelper(native, ports, made, directory, signal);
  const netns = networkOf(first.pid);
  // If it lives, the network that was just looked at is its own, and not that of one that has its number by now.
  if (netns === null || lookAt(first) === "dead") throw doorsFailure("the container's network may not be looked at");
  const opening = openDoors(native, { pid: first.pid, netns }, ports, signal);
  // While the gate is at work; nothing answers at a door yet.
  opening.catch(() => {});
  try {
    if (!isGvisor(container)) await confirmNetwork(made, netns);
  } catch (error) {
    await opening.then((doors) => doors[Symbol.asyncDispose]()).catch(() => {});
    throw error;
  }
  return opening;
}

/** gVisor's own process is in the network that the engine has made, but its programs only if it was told so. */
function refuseOwnNetwork({ pid }: ProcessMark): void {
  if (argvOf(pid).includes("--network=host")) return;
  throw doorsFailure(
    "gVisor has a network of its own making; doors need a runtime that calls runsc with --network=host",
  );
}
