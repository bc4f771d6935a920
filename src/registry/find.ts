import { SessionError } from "../errors.ts";
import type { SessionId } from "./record.ts";

interface Named {
  readonly id: SessionId;
}

/** The session that an id, or the beginning of one, means; or the name of its container. */
export function findSession<T extends Named>(
  views: readonly T[],
  word: string,
  whereToLook = "`podbot ps` lists all sessions.",
): T {
  const text = word.replace(/^podbot-/, "");
  const exact = views.find(({ id }) => id === text);
  if (exact !== undefined) return exact;
  const fitting = text === "" ? [] : views.filter(({ id }) => id.startsWith(text));
  const [only] = fitting;
  if (only === undefined) throw notFound(views, text, whereToLook);
  if (fitting.length === 1) return only;
  const ids = fitting.map(({ id }) => id);
  throw new SessionError("SESSION_AMBIGUOUS", `"${text}" fits ${ids.length} sessions: ${ids.join(", ")}.`, {
    hint: "Write more of the id.",
    details: { ids },
  });
}

function notFound(views: readonly Named[], text: string, whereToLook: string): SessionError {
  const near = nearest(
    views.map(({ id }) => id),
    text,
  );
  return new SessionError("SESSION_NOT_FOUND", `No session has the id "${text}".`, {
    hint: near === undefined ? whereToLook : `Did you mean ${near}? ${whereToLook}`,
    details: near === undefined ? {} : { nearest: near },
  });
}

/** Ids are random, so what is nearly right is a slip in one or two places. Shorter texts are near to everything. */
function nearest(ids: readonly string[], text: string): string | undefined {
  const typed = text.toLowerCase();
  const [best] = ids
    .map((id) => ({ id, slips: countSlips(id, typed) }))
    .filter(({ id, slips }) => typed.length >= 4 && typed.length <= id.length && slips <= 2)
    .sort((one, other) => one.slips - other.slips);
  return best?.id;
}

function countSlips(id: string, typed: string): number {
  return [...typed].filter((sign, at) => sign !== id.charAt(at)).length;
}
