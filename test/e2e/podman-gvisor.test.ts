import { conformance } from "../wall/conformance.ts";
import { boxes } from "./box.ts";
import { openEngineSite } from "./engine-site.ts";
import { engine } from "./engines/engine.ts";
import { flows } from "./flow.ts";

const podman = engine("podman-gvisor");
conformance("Podman with gVisor", () => openEngineSite(podman), [
  {
    title: "have a terminal where one is asked for, with its size and the next",
    why: "gVisor changes a terminal's size without telling anybody: SIGWINCH never comes.",
  },
  {
    title: "on a terminal are interrupted, stopped and continued by its keys and signals",
    why: "gVisor's terminals make no signals of Ctrl-C and Ctrl-Z.",
  },
  {
    title: "nobody can kill the first process, stop it or look into it",
    why: "gVisor lets root inside signal the first process of its namespace: the box ends, and nothing else.",
  },
]);
boxes("Podman with gVisor", podman, "the kernel's part");
flows("Podman with gVisor", podman, "the kernel's part");
