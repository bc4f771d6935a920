import { engine } from "./engines/engine.ts";
import { faults } from "./faults/suite.ts";

// What Podbot decides without its engine is proven with rootful Podman.
faults("Docker", engine("docker"), "the engine's part");
