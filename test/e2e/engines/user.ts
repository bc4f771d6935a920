import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { execute } from "./execute.ts";
import type { Caller } from "./record.ts";
import type { Run } from "./run.ts";

const user = "podbot-e2e";

/** A user of this machine who is nobody in particular. The account is made once; its home is the run's. */
export async function ordinaryUser(run: Run): Promise<Caller> {
  const find = () => execute(["id", "-u", user]).catch(() => null);
  if ((await find()) === null) {
    // Another run may make it at the same time: whether it is there counts.
    await execute(["useradd", "--create-home", user]).catch(() => {});
  }
  const found = await find();
  if (found === null) throw new Error(`the user ${user} cannot be made: try \`useradd --create-home ${user}\``);
  const [uid, gid] = [Number(found), Number(await execute(["id", "-g", user]))];
  const home = join(run.directory, "home");
  mkdirSync(home, { mode: 0o700 });
  chownSync(home, uid, gid);
  return { uid, gid, user, home };
}

/** The same user, who is there while the suite runs. */
export function ordinaryIds(): Pick<Caller, "uid" | "gid"> {
  const ask = (flag: string) => Number(spawnSync("id", [flag, user], { encoding: "utf8" }).stdout);
  return { uid: ask("-u"), gid: ask("-g") };
}

export function rootUser(run: Run): Caller {
  const home = join(run.directory, "root");
  mkdirSync(home, { mode: 0o700 });
  return { uid: 0, gid: 0, user: "root", home };
}
