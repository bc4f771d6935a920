/**
 * How much of the shared tests runs on an engine. Podbot's own decisions are the same on every engine and are tested on
 * rootful Podman only.
 *
 * - `everything`: rootful Podman
 * - `the engine's part`: what the engine influences (Docker, rootless Podman)
 * - `the kernel's part`: what the kernel inside influences (gVisor)
 * - `the caller's part`: what the caller's permissions influence (Docker used by an ordinary user)
 *
 * Each group of tests says what it leaves out.
 */
export type Extent = "everything" | "the engine's part" | "the kernel's part" | "the caller's part";
