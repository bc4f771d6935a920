export const startsForEachKind = Number(process.env["PODBOT_RACE_STARTS"] ?? 500);
