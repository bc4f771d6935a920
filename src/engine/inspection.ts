import { setTimeout as wait } from "node:timers/promises";
import { type EngineAnswer, isContainerMissing } from "./answer.ts";
import type { EngineCall, EngineClient } from "./client.ts";
import { type CallOptions, containerPath } from "./containers.ts";
import { labelsOf, listOf, numberOf, recordOf, stringOf, stringsOf } from "./shape.ts";

export type ContainerStatus =
  | "created"
  | "running"
  | "paused"
  | "restarting"
  | "removing"
  | "exited"
  | "dead"
  | (string & {});

export interface ContainerView {
  readonly id: string;
  /** Without the slash that Docker begins it with. */
  readonly name: string;
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  /** In seconds since 1970, or null where the engine does not say. */
  readonly createdAt: number | null;
  readonly status: ContainerStatus;
}

export interface ContainerInspection extends ContainerView {
  /** Of the first process, on the engine's machine; 0 while nothing runs. */
  readonly pid: number;
  readonly exitCode: number;
  readonly error: string;
  readonly oomKilled: boolean;
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly tty: boolean;
  readonly runtime: string;
}

/** Null where there is no such container. */
export async function inspectContainer(
  client: EngineClient,
  id: string,
  options: CallOptions = {},
): Promise<ContainerInspection | null> {
  const call = { ...options, method: "GET", path: containerPath(id, "/json"), accept: [404] } as const;
  const answer = await client.request(call).catch((error: unknown) => {
    if (isContainerMissing(error)) return null;
    throw error;
  });
  if (answer === null) return null;
  if (answer.status === 404) {
    await answer.discard();
    return null;
  }
  const { Id, Name, Image, Created, Config, State, HostConfig } = recordOf(await answer.json());
  const config = recordOf(Config);
  const state = recordOf(State);
  const created = Date.parse(stringOf(Created));
  return {
    id: stringOf(Id),
    name: plainName(Name),
    image: stringOf(config["Image"]) || stringOf(Image),
    labels: labelsOf(config["Labels"]),
    createdAt: Number.isNaN(created) ? null : created / 1_000,
    status: statusText(state["Status"]),
    pid: numberOf(state["Pid"]),
    exitCode: numberOf(state["ExitCode"]),
    error: stringOf(state["Error"]),
    oomKilled: state["OOMKilled"] === true,
    startedAt: stringOf(state["StartedAt"]),
    finishedAt: stringOf(state["FinishedAt"]),
    tty: config["Tty"] === true,
    runtime: stringOf(recordOf(HostConfig)["Runtime"]),
  };
}

/** Containers that have all of these labels; an empty value stands for any. */
export async function listContainers(
  client: EngineClient,
  labels: Readonly<Record<string, string>>,
  options: CallOptions & { readonly all?: boolean } = {},
): Promise<readonly ContainerView[]> {
  const { all = true, ...rest } = options;
  const label = Object.entries(labels).map(([name, value]) => (value === "" ? name : `${name}=${value}`));
  const query = { all, filters: JSON.stringify({ label }) };
  const answer = await askForList(client, { ...rest, method: "GET", path: "/containers/json", query });
  return listOf(await answer.json()).map((item) => {
    const { Id, Names, Image, Labels, Created, State } = recordOf(item);
    return {
      id: stringOf(Id),
      name: plainName(stringsOf(Names)[0]),
      image: stringOf(Image),
      labels: labelsOf(Labels),
      createdAt: typeof Created === "number" ? Created : null,
      status: statusText(State),
    };
  });
}

const tries = 5;

/** Podman fails to list any where one goes away meanwhile. */
async function askForList(client: EngineClient, call: EngineCall): Promise<EngineAnswer> {
  for (let left = tries; ; left--) {
    try {
      return await client.request(call);
    } catch (error) {
      if (left === 0 || !isContainerMissing(error)) throw error;
      await wait(50);
    }
  }
}

function plainName(name: unknown): string {
  return stringOf(name).replace(/^\//, "");
}

/** Podman has words of its own for some states. */
function statusText(status: unknown): ContainerStatus {
  const text = stringOf(status);
  return text === "configured" || text === "initialized" ? "created" : text === "stopped" ? "exited" : text;
}
