import { inspectContainer } from "../../engine/inspection.ts";
import { thisHost } from "../../machine/host.ts";
import { networkOf } from "../../machine/network-namespace.ts";
import { lookAt, markOf, type ProcessMark } from "../../machine/process-mark.ts";
import { argvOf } from "../../machine/processes.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import { type Doors, openDoors } from "../doors.ts";
import { doorsFailure } from "../doors-failure.ts";
import { openByHelper } from "./doors-container.ts";
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
  const first = isGvisor(made.container) ? await findGvisor(made) : made.first;
  if (needsHelper(made.container.engine, thisHost().uid)) return openByHelper(native, ports, made, directory, signal);
  if (first === null) throw doorsFailure("there is no process of the container's on this machine");
  const netns = networkOf(first.pid);
  // If it lives, the network that was just looked at is its own, and not that of one that has its number by now.
  if (netns === null || lookAt(first) === "dead") throw doorsFailure("the container's network may not be looked at");
  return openDoors(native, { pid: first.pid, netns }, ports, signal);
}

/** gVisor's own process, in whose network the container is if it has none of its own making. */
async function findGvisor({ client, name, started }: NewContainer): Promise<ProcessMark | null> {
  await started;
  const found = await inspectContainer(client, name);
  const first = found === null || found.pid === 0 ? null : markOf(found.pid);
  if (found === null || first === null) return null;
  const argv = argvOf(first.pid);
  // A number that an engine in another place has named may be anybody's here.
  if (!argv.includes(found.id)) return null;
  if (argv.includes("--network=host")) return first;
  throw doorsFailure(
    "gVisor has a network of its own making; doors need a runtime that calls runsc with --network=host",
  );
}
