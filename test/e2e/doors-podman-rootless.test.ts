import { doors } from "./doors.ts";
import { becomeCaller, engine } from "./engines/engine.ts";

const podman = engine("podman-rootless");
becomeCaller(podman);
doors("rootless Podman", async () => podman);
