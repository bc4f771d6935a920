import { describe } from "vitest";
import { becomeCaller, engine } from "./engines/engine.ts";
import { start } from "./faults/start.ts";
import { steps } from "./faults/steps.ts";

const docker = engine("docker-group");
becomeCaller(docker);

// The daemon is that of Docker for root, which has the whole suite: here another user's processes are what differs.
describe("a Docker that an ordinary user may use", () => {
  steps(() => docker);
  start(() => docker);
});
