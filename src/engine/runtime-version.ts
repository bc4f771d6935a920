import type { EngineClient } from "./client.ts";
import { listOf, recordOf, stringOf } from "./shape.ts";

/** The program that makes an engine's containers, as the engine tells of it: `runc`, `1.1.5`. */
export interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
}

/** Null where the engine tells of none that is known. Takes Podman half a second. */
export async function runtimeVersion(client: EngineClient): Promise<RuntimeVersion | null> {
  const answer = await client.request({ method: "GET", path: "/version", api: "docker" });
  const components = listOf(recordOf(await answer.json())["Components"]).map(recordOf);
  for (const component of components) {
    // Docker says `runc`, Podman `OCI Runtime (runc)` and the first lines of what the program prints.
    const name = /^(?:OCI Runtime \()?(runc|crun)\)?$/.exec(stringOf(component["Name"]))?.[1];
    const version =
      stringOf(component["Version"])
        .split("\n")[0]
        ?.replace(/^.*version\s+/, "")
        .trim() ?? "";
    if (name !== undefined && version !== "") return { name, version };
  }
  return null;
}
