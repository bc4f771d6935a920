import { engine } from "./engines/engine.ts";
import { faults } from "./faults/suite.ts";

faults("Docker", engine("docker"));
