import { PolicyError } from "../errors.ts";
import type { Rule } from "../policy/rule.ts";
import type { Survey } from "../survey/survey.ts";
import { decideTrusted, type Verdict } from "./decide.ts";
import { layGround } from "./lay.ts";
import type { Request } from "./request.ts";
import type { Look } from "./territory.ts";

/** What of the host a region shows: nothing, something to read, something to write. */
const shown = { private: 0, exclude: 0, ro: 1, rw: 2 } as const satisfies Record<Look, number>;

/** An untrusted rule that grants what the trusted ones do not is an error, not a rule without effect. */
export function refuseWidening(request: Request, survey: Survey, verdicts: readonly Verdict[]): void {
  // Beaten or not: a guard that lowers an untrusted grant may still leave more than there was.
  const untrusted = verdicts.filter(({ rule, beaten }) => [rule, ...beaten].some(({ trusted }) => !trusted));
  if (untrusted.length === 0) return;
  const { territory } = layGround(request, survey, decideTrusted(request, survey));
  const wide = untrusted.filter(({ path, rule }) => shownBy(rule) > shown[territory.at(path).look]);
  if (wide.length === 0) return;
  throw new PolicyError(
    "CONFIG_UNTRUSTED",
    [
      "The project's configuration grants more than you have allowed:",
      ...wide.map(({ path, rule }) => `  ${rule.origin}: ${rule.access} ${rule.written} opens ${path}`),
    ].join("\n"),
    {
      hint: "Read it, then accept it as it is now with: podbot trust",
      details: { paths: wide.map(({ path }) => path) },
    },
  );
}

/** A directory that is made for the box shows nothing of the host. */
function shownBy({ access, fresh, own }: Rule): number {
  return fresh !== undefined || own !== undefined ? 0 : shown[access];
}
