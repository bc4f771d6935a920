import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { SessionRecord } from "../../src/registry/record.ts";
import { startIdle } from "../cli/terminal/remains.ts";
import type { World } from "../world.ts";
import { getting } from "./client-programs.ts";
import { allow, type Town } from "./stage.ts";

/** What one box may have its keeper hold, whatever it says. */
export const mostGrownBytes = 256 << 20;

/** A box, and a keeper whose memory is looked at. */
export class FloodedBox {
  readonly #world: World;
  readonly #id: string;
  readonly #keeper: number;
  #idleBytes = 0;

  private constructor(world: World, id: string) {
    this.#world = world;
    this.#id = id;
    const record = join(world.home, ".local/state/podbot/sessions", id, "record.json");
    this.#keeper = (JSON.parse(readFileSync(record, "utf8")) as SessionRecord).keeper.pid;
  }

  static async open(world: World, town: Town): Promise<FloodedBox> {
    const answer = town.echo("slow");
    await town.https(
      "slow.example.com",
      (request, response) => {
        if (request.url !== "/" && request.url !== "/slow") answer(request, response);
      },
      (_, socket) => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
      },
    );
    await town.https("quick.example.com");
    const much = Buffer.alloc(1 << 20);
    await town.tcp("raw.example.com", (socket) => void socket.pause().write(much));
    allow(world, town, {
      network: {
        rules: [
          { host: "slow.example.com", path: "/**" },
          { host: "quick.example.com", path: "/**" },
          { host: "raw.example.com", port: 2525 },
        ],
      },
    });
    copyFileSync(join(import.meta.dirname, "flood.py"), join(world.project, "flood.py"));
    world.file(join(world.project, "get.py"), getting);
    const box = new FloodedBox(world, startIdle(world));
    await box.expectAnswer();
    box.#idleBytes = box.#bytes("VmRSS");
    return box;
  }

  /** Has these things said so many times each, and resolves with how much larger than idle the keeper has ever been. */
  async flood(...modes: readonly (readonly [mode: string, times: number])[]): Promise<number> {
    const { stdout, stderr, status } = await this.#exec("flood.py", ...modes.flat().map(String));
    expect([stderr, status]).toEqual(["", 0]);
    // The control: connections were opened, of which the gateway may have ended some.
    for (const [mode] of modes) expect(stdout).toMatch(new RegExp(`^${mode} [1-9]`, "m"));
    return this.#bytes("VmHWM") - this.#idleBytes;
  }

  /** It is not only there, but does its work. */
  async expectAnswer(): Promise<void> {
    const { stdout, stderr } = await this.#exec("get.py", "https://quick.example.com/probe");
    expect(stdout, stderr).toContain('"url":"/probe"');
  }

  #exec(...words: readonly string[]) {
    return this.#world.podbot(["exec", "--no-tty", this.#id, "--", "python3", ...words]);
  }

  #bytes(field: "VmRSS" | "VmHWM"): number {
    const status = readFileSync(`/proc/${this.#keeper}/status`, "latin1");
    return 1024 * Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]);
  }
}
