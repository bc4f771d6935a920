import { becomeCaller, engine } from "./engines/engine.ts";
import { faults } from "./faults/suite.ts";

const podman = engine("podman-rootless");
becomeCaller(podman);
// What Podbot decides without its engine is proven with rootful Podman.
faults("rootless Podman", podman, "the engine's part");
