import type { AuditEntry } from "../gateway/audit.ts";
import type { OnAsked } from "../keeper/outside.ts";
import { summarizeRefusals } from "../policy/refusals.ts";

/** Whoever asks for the same again and again need not be remembered each time. */
const most = 1_000;

/** What a run was refused at its doors, for its owner to read at the end. */
export function rememberRefusals(): { readonly remember: OnAsked; summary(): readonly string[] } {
  const refused: AuditEntry[] = [];
  return {
    remember: (entry) => {
      if (entry.verdict === "refused" && refused.length < most) refused.push(entry);
    },
    summary: () => summarizeRefusals(refused),
  };
}
