import { becomeCaller, engine } from "./engines/engine.ts";
import { faults } from "./faults/suite.ts";

const podman = engine("podman-rootless");
becomeCaller(podman);
faults("rootless Podman", podman);
