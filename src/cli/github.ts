import { loadConfig } from "../config/load.ts";
import { UsageError } from "../errors.ts";
import { examine } from "../github/findings.ts";
import { appOf, permissionsOf } from "../github/settings.ts";
import { chooseUpstream } from "../keeper/upstream.ts";
import { isAble } from "../machine/diagnosis.ts";
import { parseRepository } from "../policy/repository.ts";
import { lastValue, type Parsed } from "./command.ts";
import { printFindings } from "./findings.ts";
import type { Io } from "./io.ts";
import { placeOf } from "./place.ts";
import { visibleJson } from "./visible.ts";

/** `podbot github check`: whether there would be a token, and why not. Mints none. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const [verb, word] = parsed.words;
  if (verb !== "check") {
    throw new UsageError("USAGE", `podbot github: there is no ${verb}.`, {
      hint: "Usage: podbot github check [--json] [OWNER/NAME]",
    });
  }
  const repository = word === undefined ? null : parseRepository(word);
  const place = placeOf(parsed, io);
  const configFile = lastValue(parsed, "config");
  const { config } = await loadConfig({ ...place, ...(configFile === undefined ? {} : { configFile }) });
  const app = appOf(config.github, place.home);
  const permissions = permissionsOf(config.github.permissions);
  const { findings, failure } = await examine({
    app,
    permissions,
    repository,
    upstream: await chooseUpstream({ config }, place.env),
  });
  const able = isAble(findings);
  if (parsed.switches.has("json")) {
    io.stdout.write(`${visibleJson({ able, code: failure?.code ?? null, findings }, 2)}\n`);
  } else {
    printFindings(findings, io);
    io.stdout.write(able ? "\nTokens can be had.\n" : "\nThere is no token to be had yet.\n");
  }
  return able ? 0 : (failure?.exitStatus ?? 125);
}
