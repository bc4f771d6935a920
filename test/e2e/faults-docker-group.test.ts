import { becomeCaller, engine } from "./engines/engine.ts";
import { faults } from "./faults/suite.ts";

const docker = engine("docker-group");
becomeCaller(docker);
// The daemon is that of Docker for root, which has all that is the daemon's: here another user's processes differ.
faults("a Docker that an ordinary user may use", docker, "the caller's part");
