import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify, listIfThere } from "../read.ts";
import { type Kind, repeatedly } from "./disturbance.ts";

/**
 * Lets the time of day jump by up to half a minute either way; the monotonic clock is unaffected. libfaketime does this
 * for the test processes only. GitHub refuses a signature that begins more than a minute later than its own time, so
 * larger jumps between signing and asking are bound to fail.
 */
export const clock: Kind = {
  name: "clock",
  obstacle: () => (library() === null ? "libfaketime is not installed: apt-get install libfaketime" : null),
  async start({ chance, run }) {
    removeShared();
    const file = join(run.directory, "clock");
    const jumping = repeatedly(() => {
      const offset = chance(60) - 30;
      writeFileSync(`${file}.part`, `${offset < 0 ? "" : "+"}${offset}s\n`);
      renameSync(`${file}.part`, file);
      return 500 + chance(4_000);
    });
    return {
      prefix: [],
      env: {
        LD_PRELOAD: library() ?? "",
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_NO_CACHE: "1",
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
        NO_FAKE_STAT: "1",
      },
      async [Symbol.asyncDispose]() {
        try {
          jumping.stop();
        } finally {
          removeShared();
        }
      },
    };
  },
};

function library(): string | null {
  const architecture = { x64: "x86_64", arm64: "aarch64" }[process.arch as string] ?? process.arch;
  const places = [`/usr/lib/${architecture}-linux-gnu`, "/usr/lib64", "/usr/lib"];
  return places.map((place) => `${place}/faketime/libfaketime.so.1`).find(existsSync) ?? null;
}

/** libfaketime leaves its shared memory behind when its first process ends by a signal or in another mount namespace. */
function removeShared(): void {
  for (const name of listIfThere("/dev/shm")) {
    const [, pid] = /^(?:faketime_shm|sem\.faketime_sem)_(\d+)$/.exec(name) ?? [];
    if (pid === undefined || identify(Number(pid)) !== null) continue;
    try {
      rmSync(join("/dev/shm", name), { force: true });
    } catch {
      // It belongs to another user.
    }
  }
}
