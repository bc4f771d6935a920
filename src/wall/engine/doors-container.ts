import { chmodSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { EngineClient } from "../../engine/client.ts";
import { createContainer, removeContainer, startContainer } from "../../engine/containers.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import type { ContainerPlan } from "../../plan/container.ts";
import { awaitDoors, type Doors } from "../doors.ts";
import { unwritable } from "./inlet.ts";
import type { NewContainer } from "./new-container.ts";

/** Where the helper finds the gate and the socket. */
const place = "/run/podbot-doors";

const removalMs = 5_000;

export function helperName(container: string): string {
  return `${container}-doors`;
}

/**
 * Doors in a container of root's, for somebody who is not: he may not enter its network, but the engine that he may ask
 * can. It starts a second container that shares the network and nothing else, in which the gate opens the doors, brings
 * them to a socket in the caller's own directory, and ends. Of the image, which it needs to have one, nothing is run.
 */
export async function openByHelper(
  native: Pick<NativePrograms, "gate">,
  ports: readonly number[],
  { client, container, id, name, labels, started }: NewContainer,
  directory: string,
  signal: AbortSignal | undefined,
): Promise<Doors> {
  // Before that, there is no network to share.
  await started;
  const meeting = join(directory, "doors");
  layGate(native.gate, meeting);
  const helper = helperName(name);
  const over = new AbortController();
  const both = AbortSignal.any([over.signal, ...(signal === undefined ? [] : [signal])]);
  const doors = awaitDoors(native, join(meeting, "socket"), ports, both);
  // Whoever fails first says why.
  doors.catch(() => {});
  try {
    const body = { ...bodyOf(container, id, meeting, ports), Labels: labels };
    const created = await createContainer(client, helper, body, { signal: both });
    try {
      await startContainer(client, created.id, { signal: both });
      return await doors;
    } catch (error) {
      await forget(client, created.id);
      throw error;
    }
  } catch (error) {
    over.abort(error);
    throw error;
  } finally {
    rmSync(meeting, { recursive: true, force: true });
  }
}

/** What was made and never started does not go by itself. */
async function forget(client: EngineClient, id: string): Promise<void> {
  await removeContainer(client, id, { timeoutMs: removalMs }).catch(() => {});
}

function layGate(gate: string, meeting: string): void {
  try {
    // What a try that failed has left.
    rmSync(meeting, { recursive: true, force: true });
    mkdirSync(meeting, { mode: 0o700 });
    // A copy: the engine may not see where Podbot is installed, as on a filesystem of the caller's own.
    copyFileSync(gate, join(meeting, "gate"));
    chmodSync(join(meeting, "gate"), 0o555);
  } catch (cause) {
    throw unwritable(meeting, cause);
  }
}

/** Routes and ports of the network, and the way to the socket: nothing else is asked of it. */
const capabilities = ["NET_ADMIN", "NET_BIND_SERVICE", "DAC_OVERRIDE"];

function bodyOf(container: ContainerPlan, id: string, meeting: string, ports: readonly number[]) {
  return {
    Image: container.engine.image.id,
    Entrypoint: [`${place}/gate`, "--here", `${place}/socket`, ...ports.map(String)],
    Cmd: [],
    User: "0:0",
    WorkingDir: "/",
    Healthcheck: { Test: ["NONE"] },
    HostConfig: {
      AutoRemove: true,
      NetworkMode: `container:${id}`,
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      CapAdd: capabilities,
      SecurityOpt: ["no-new-privileges", ...(container.keepSelinuxLabels ? [] : ["label=disable"])],
      PidsLimit: 8,
      LogConfig: { Type: "none" },
      Mounts: [{ Type: "bind", Source: meeting, Target: place, ReadOnly: true }],
    },
  };
}
