import { spawn, spawnSync } from "node:child_process";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";

/** Repositories below a directory, in git's own protocol over HTTP, by git's own program. */
export function serveGit(root: string): RequestListener {
  return (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, search } = new URL(request.url ?? "", "http://localhost");
    const { method = "GET", headers } = request;
    const child = spawn("git", ["http-backend"], {
      env: {
        ...own,
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: "1",
        // Whoever is somebody may push.
        REMOTE_USER: "somebody",
        REQUEST_METHOD: method,
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        CONTENT_TYPE: headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: headers["content-encoding"] ?? "",
        GIT_PROTOCOL: `${headers["git-protocol"] ?? ""}`,
      },
      stdio: ["pipe", "pipe", "ignore"],
    });
    request.pipe(child.stdin.on("error", () => {}));
    let head = "";
    const onData = (part: Buffer) => {
      head += part.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      child.stdout.off("data", onData);
      for (const line of head.slice(0, end).split("\r\n")) {
        const [name = "", value = ""] = line.split(": ");
        if (name === "Status") response.statusCode = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      response.write(Buffer.from(head.slice(end + 4), "latin1"));
      child.stdout.pipe(response);
    };
    child.stdout.on("data", onData);
  };
}

/** The same in the protocol that git's daemon speaks, each connection by a process of its own. */
export function serveGitDaemon(root: string): (socket: Socket) => void {
  return (socket) => {
    const words = ["daemon", "--inetd", "--export-all", `--base-path=${root}`, root];
    const child = spawn("git", words, { env: own, stdio: ["pipe", "pipe", "ignore"] });
    socket.pipe(child.stdin.on("error", () => {}));
    child.stdout.pipe(socket.on("error", () => {}));
  };
}

/** Bare repositories with one commit each. */
export function makeRepositories(root: string, ...names: readonly string[]): void {
  const git = (...words: readonly string[]) => {
    const { status, stderr } = spawnSync("git", words, { env: own, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  };
  const tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  for (const name of names) {
    const at = join(root, name);
    git("init", "-q", "--bare", "-b", "main", at);
    git("-C", at, "config", "http.receivepack", "true");
    git("-C", at, "hash-object", "-t", "tree", "-w", "/dev/null");
    const { stdout } = spawnSync("git", ["-C", at, "commit-tree", "-m", "first", tree], { env: own, encoding: "utf8" });
    git("-C", at, "update-ref", "refs/heads/main", stdout.trim());
  }
}

const own = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Town",
  GIT_AUTHOR_EMAIL: "town@example.com",
  GIT_COMMITTER_NAME: "Town",
  GIT_COMMITTER_EMAIL: "town@example.com",
};
