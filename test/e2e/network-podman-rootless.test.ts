import { becomeCaller, engine } from "./engines/engine.ts";
import { attacksOn } from "./network/attacks.ts";

const podman = engine("podman-rootless");
becomeCaller(podman);
attacksOn({ title: "rootless Podman", open: async () => podman });
attacksOn({ title: "bubblewrap, for an ordinary user", open: async () => null });
