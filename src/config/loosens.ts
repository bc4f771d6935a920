import { isDeepStrictEqual } from "node:util";
import type { CommandRule, PermissionLevel } from "./types.ts";

// Whether a value asks for more than what holds without it: what a project may not do before its owner trusts it.

/** Presets that only protect. All others, and every `!@…`, are taken as grants: a preset added later must be safe by default. */
export const protectingPreset = /^@(?:git|git-strict|lint\/.+)$/;

/**
 * Blocking restricts, and so does a preset where there was no rule. What takes a restriction's place may be weaker
 * than it, and a script is a file that is shown to programs inside, wherever it lies.
 */
export function loosensCommand(rule: CommandRule, below: CommandRule | undefined): boolean {
  if (rule === below || rule === false) return false;
  return (typeof rule === "string" && !rule.startsWith("@")) || (below !== undefined && below !== true);
}

export function permitsMore(level: PermissionLevel, below: PermissionLevel = "none"): boolean {
  const levels: readonly PermissionLevel[] = ["none", "read", "write"];
  return levels.indexOf(level) > levels.indexOf(below);
}

/** Saying what already holds asks for nothing. */
export function changes(value: unknown, below: unknown): boolean {
  return !isDeepStrictEqual(value, below);
}

/** Where nothing was said, every limit narrows. */
export function exceeds(value: number | undefined, below: number | undefined): boolean {
  return value !== undefined && below !== undefined && value > below;
}

/** All is more than any part; two different parts are each more than the other. */
export function delegatesMore(value: string, below: string | undefined): boolean {
  return value !== "disabled" && value !== below && below !== "allow_all";
}

const reaches = ["none", "allowlist", "learn", "open"];

export function opensNetwork(mode: string, below: string | undefined): boolean {
  return reaches.indexOf(mode) > reaches.indexOf(below as string);
}

export function becomes(granted: unknown): (value: unknown, below: unknown) => boolean {
  return (value, below) => value === granted && below !== granted;
}
