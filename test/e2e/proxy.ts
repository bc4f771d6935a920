import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import type { World } from "../world.ts";

export interface Proxy extends AsyncDisposable {
  readonly path: string;
  /** The first line of every request. */
  readonly requests: readonly string[];
  /** All that was said to the engine, byte by byte. */
  said(): string;
}

/** Stands between Podbot and the engine, changes nothing and writes down what is asked. */
export async function openProxy(
  { directory }: Pick<World, "directory">,
  socket: string,
  before: (line: string) => void = () => {},
): Promise<Proxy> {
  const path = join(directory, `proxy-${randomBytes(4).toString("hex")}.sock`);
  const requests: string[] = [];
  let said = "";
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ path: socket, allowHalfOpen: true });
    near.on("data", (bytes: Buffer) => {
      said += bytes.toString("latin1");
      for (const [, line] of bytes
        .toString("latin1")
        .matchAll(/^((?:GET|HEAD|PUT|POST|DELETE) \S+) HTTP\/1\.1\r\n/gm)) {
        before(line as string);
        requests.push(line as string);
      }
      far.write(bytes);
    });
    near.on("end", () => far.end());
    far.pipe(near);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => {}).on("close", () => other.destroy());
    }
  });
  server.listen(path);
  await once(server, "listening");
  return {
    path,
    requests,
    said: () => said,
    async [Symbol.asyncDispose]() {
      server.close();
      rmSync(path, { force: true });
    },
  };
}
