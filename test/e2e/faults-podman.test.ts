import { engine } from "./engines/engine.ts";
import { faults } from "./faults/suite.ts";

faults("rootful Podman", engine("podman"), "everything");
