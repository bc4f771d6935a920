import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { findNativePrograms } from "../../src/machine/programs.ts";
import { openSandbox } from "../../src/sandbox/open.ts";
import { type Doors, openDoors } from "../../src/wall/doors.ts";
import type { Box } from "../../src/wall/wall.ts";
import { until } from "../eventually.ts";
import { findFirstProcess } from "../first-process.ts";
import { answer, dialling } from "../native/guarded-box.ts";
import { newId } from "../wall/conformance.ts";
import { openEngineSite } from "./engine-site.ts";
import type { TestEngine } from "./engines/engine.ts";

const env = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", HOME: "/tmp" };
const trust = [{ target: "/run/podbot/trust/authority.pem", bytes: Buffer.from("authority\n") }];

export interface GuardedContainer extends AsyncDisposable {
  readonly box: Box;
  readonly id: string;
  run(...argv: readonly [string, ...string[]]): Promise<string>;
}

/** A container whose network leads to its doors alone. */
export async function openGuardedContainer(engine: TestEngine, id = newId()): Promise<GuardedContainer> {
  const site = await openEngineSite(engine, { network: { mode: "allowlist", domains: ["example.com"] } });
  try {
    const birth = { id, directory: site.newDirectory(), env, trust };
    const box = await site.wall.start(await site.plan(), birth);
    return {
      box,
      id,
      async run(...argv) {
        const running = await openSandbox(box).exec({ argv, timeoutMs: 60_000 });
        running.stdin.end();
        const [said] = await Promise.all([text(running.stdout), running.exited]);
        return said;
      },
      async [Symbol.asyncDispose]() {
        await box[Symbol.asyncDispose]();
        await site[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await site[Symbol.asyncDispose]();
    throw error;
  }
}

/** What a container's doors must do, whichever engine has made it. */
export function doors(name: string, open: () => Promise<TestEngine>, { hasIpv6 = true, canEnter = true } = {}): void {
  describe(`the doors of ${name}`, () => {
    const python = (script: string) => ["python3", "-c", `${dialling}\n${script}`] as const;

    test("are there when it is born, by whatever address or name they are dialled", async () => {
      await using made = await openGuardedContainer(await open());
      const opened = made.box.doors as Doors;
      expect([...opened.tcp.keys()]).toEqual(expect.arrayContaining([53, 80, 443]));
      answer(opened);
      let asked = "";
      opened.dns.on("message", (question, { address, port }) => {
        asked += question.toString("latin1");
        // There is no such name.
        if (question.length > 12)
          opened.dns.send(Buffer.from(question).fill("\x81\x83", 2, 4, "latin1"), port, address);
      });
      const dials = [
        'dial("203.0.113.7", 443)',
        'dial("203.0.113.7", 22)',
        'dial("8.8.8.8", 53, socket.SOCK_DGRAM)',
        'dial("8.8.8.8", 123, socket.SOCK_DGRAM)',
        ...(!hasIpv6 ? [] : ['dial("2001:db8::7", 80)']),
      ];
      expect((await made.run(...python(dials.join("\n")))).split("\n")).toEqual([
        "203.0.113.7 443 door ::ffff:203.0.113.7 443",
        "203.0.113.7 22 Connection refused",
        "8.8.8.8 53 answer to hello",
        "8.8.8.8 123 Connection refused",
        ...(!hasIpv6 ? [] : ["2001:db8::7 80 door 2001:db8::7 80"]),
        "",
      ]);
      await made.run("python3", "-c", "import socket; socket.getaddrinfo('where.example', 80)");
      expect(asked).toContain("where");
    });

    test("cannot be taken away from inside, and what is to be trusted cannot be changed", async () => {
      await using made = await openGuardedContainer(await open());
      answer(made.box.doors as Doors);
      const bind = "import socket; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('', 443)); s.listen()";
      const script = `python3 -c "${bind}" 2>/dev/null && echo bound
unshare -n true 2>/dev/null && echo left
ip link set lo down 2>/dev/null && echo down
cat /run/podbot/trust/authority.pem
echo x 2>/dev/null >/run/podbot/trust/authority.pem && echo wrote
echo x 2>/dev/null >/etc/resolv.conf && echo wrote
true`;
      expect(await made.run("sh", "-c", script)).toBe("authority\n");
      expect(await made.run(...python('dial("203.0.113.7", 443)'))).toContain("door");
    });

    test("refuse at once when nobody has them, and end with it", async () => {
      await using made = await openGuardedContainer(await open());
      const opened = made.box.doors as Doors;
      await opened[Symbol.asyncDispose]();
      const dial = () => made.run(...python('dial("203.0.113.7", 443)'));
      // The program that opened them ends a moment later, and resets what reached it until then.
      await until("the doors are closed", async () => {
        const said = await dial();
        expect(said).toMatch(/^203\.0\.113\.7 443 Connection (refused|reset by peer)\n$/);
        return said.includes("refused");
      });
      const pid = findFirstProcess(`/run/podbot/in/${made.id}.sock`);
      // gVisor's processes are not the host's, and root's networks are not everybody's.
      if (pid === null || !canEnter) return;
      await using again = await openDoors(findNativePrograms(), { pid }, [443]);
      answer(again);
      expect(await dial()).toBe("203.0.113.7 443 door ::ffff:203.0.113.7 443\n");
    });
  });
}
