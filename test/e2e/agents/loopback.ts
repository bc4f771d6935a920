import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ModelProcess, startModel } from "../../model/process.ts";
import type { Caller } from "../engines/record.ts";

/** A network in which there is nothing but loopback, and there a model provider and a name server. */
export interface Loopback extends AsyncDisposable, Pick<ModelProcess, "url" | "heard"> {
  /** The provider's address, and the name server's. */
  readonly host: string;
  /** Words that run a command in this network: as this user, in this directory. */
  words(command: readonly string[], as: Pick<Caller, "uid" | "gid">, at: string): readonly string[];
}

const modelPort = 8080;
const namesPort = 53;

/** An address that is nobody's (RFC 5737), for those who have a loopback of their own: containers. */
export const farHost = "192.0.2.1";

export async function openLoopback(host: "127.0.0.1" | typeof farHost = "127.0.0.1"): Promise<Loopback> {
  const directory = mkdtempSync(join(tmpdir(), "net-"));
  const resolver = join(directory, "resolv.conf");
  writeFileSync(resolver, `nameserver ${host}\n`);
  const before = ["unshare", "--net", "--mount", "sh", "-ec", enter, directory, host];
  const model = await startModel({ before, host, port: modelPort, namesPort });
  return {
    url: model.url,
    heard: () => model.heard(),
    host,
    words: (command, { uid, gid }, at) => [
      ...["nsenter", "--target", String(model.pid), "--net", "--mount", "--"],
      ...["setpriv", "--reuid", String(uid), "--regid", String(gid), "--clear-groups", "--"],
      // Not before: the directory would be one of the mounts outside.
      ...["env", "--chdir", at, "--", ...command],
    ],
    async [Symbol.asyncDispose]() {
      await model[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    },
  };
}

/** Becomes its further words. Where the machine keeps the device for itself, a rootless engine has one here. */
const enter = `
directory=$0 host=$1; shift
ip link set lo up
test "$host" = 127.0.0.1 || ip address add "$host/32" dev lo
mount --bind "$directory/resolv.conf" /etc/resolv.conf
if test -e /dev/net/tun; then
  mknod -m 666 "$directory/tun" c 10 200
  mount --bind "$directory/tun" /dev/net/tun
fi
exec "$@"`;
