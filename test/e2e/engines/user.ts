import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { accountOf, type Run } from "../../suite/run.ts";
import { execute } from "./execute.ts";
import type { Caller } from "./record.ts";

/** A user of this machine, made for the run and removed with it. */
export async function ordinaryUser(run: Run): Promise<Caller> {
  const user = accountOf(run);
  const home = join(run.directory, "home");
  // In a session of its own: an interrupt must not leave half an account.
  await execute(["setsid", "--wait", "useradd", "--no-create-home", "--home-dir", home, user]);
  const [uid, gid] = [Number(await execute(["id", "-u", user])), Number(await execute(["id", "-g", user]))];
  mkdirSync(home, { mode: 0o700 });
  chownSync(home, uid, gid);
  return { uid, gid, user, home };
}

/** The same user, for a worker. */
export function ordinaryIds(): Pick<Caller, "uid" | "gid"> {
  const ask = (flag: string) => Number(spawnSync("id", [flag, accountOf(inject("run"))], { encoding: "utf8" }).stdout);
  return { uid: ask("-u"), gid: ask("-g") };
}

export function rootUser(run: Run): Caller {
  const home = join(run.directory, "root");
  mkdirSync(home, { mode: 0o700 });
  return { uid: 0, gid: 0, user: "root", home };
}
