import { loadConfig } from "../config/load.ts";
import { listTrusted, revokeTrust, trustProject } from "../config/trust.ts";
import { ConfigError } from "../errors.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { placeOf } from "./place.ts";
import { visible } from "./visible.ts";

/** `podbot trust`: shows what the project's configuration asks for, and accepts exactly that content. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const json = parsed.switches.has("json");
  const print = (value: object, text: string) => io.stdout.write(json ? `${JSON.stringify(value)}\n` : visible(text));
  const { cwd, ...place } = placeOf(parsed, io);
  if (parsed.switches.has("list")) {
    const trusted = await listTrusted(place);
    print(
      { trusted },
      trusted.map(({ file, hash }) => `${hash.slice(0, 12)}  ${file}\n`).join("") || "Nothing is trusted yet.\n",
    );
    return 0;
  }
  const { project, layers } = await loadConfig({ cwd, ...place, acceptProject: true });
  if (project === undefined) {
    throw new ConfigError("CONFIG_NOT_FOUND", `There is no .podbot/config.* in ${cwd}.`, {
      hint: "Go to the project's directory, or name it with -C.",
    });
  }
  if (parsed.switches.has("revoke")) {
    await revokeTrust(project.file, place);
    print({ revoked: project.file }, `No longer trusted: ${project.file}\n`);
    return 0;
  }
  const { file, hash } = await trustProject(project.file, { ...place, hash: project.hash });
  const filesystem = layers.find(({ name }) => name === "project")?.value.filesystem;
  const paths = (["rw", "ro"] as const).flatMap((access) =>
    (filesystem?.[access] ?? []).map((path) => `  filesystem.${access}: ${path}\n`),
  );
  const asks = [
    ...project.widenings.map(({ key, value, why }) => `  ${key} = ${JSON.stringify(value)}: ${why}\n`),
    ...paths,
  ].join("");
  print(
    { file, hash, widenings: project.widenings },
    `Trusted as it is now: ${file}\n${asks === "" ? "" : `It asks for:\n${asks}`}Any change to it needs this again.\n`,
  );
  return 0;
}
