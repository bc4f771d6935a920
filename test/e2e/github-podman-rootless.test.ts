import { becomeCaller, engine } from "./engines/engine.ts";
import { clonesOn, tokensOn } from "./github/clones.ts";

const podman = engine("podman-rootless");
becomeCaller(podman);
tokensOn("rootless Podman", podman);
clonesOn("rootless Podman", podman);
