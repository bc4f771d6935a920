import { afterAll } from "vitest";
import { engine, newEngine, type TestEngine } from "./engines/engine.ts";
import { attacksOn } from "./network/attacks.ts";

attacksOn({ title: "bubblewrap", open: async () => null });
attacksOn({ title: "rootful Podman", open: async () => engine("podman") });
attacksOn({ title: "Docker", open: async () => engine("docker"), hasIpv6: false });

let gvisor: Promise<TestEngine & AsyncDisposable> | undefined;
afterAll(async () => {
  await (await gvisor)?.[Symbol.asyncDispose]();
});
attacksOn({
  title: "gVisor, where it leaves the network to the kernel",
  open: () => {
    gvisor ??= newEngine("podman-gvisor-host");
    return gvisor;
  },
  sharesKernel: false,
});
