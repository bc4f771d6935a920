import { becomeCaller, engine } from "./engines/engine.ts";
import { clonesOn, tokensOn } from "./github/clones.ts";

const docker = engine("docker-group");
becomeCaller(docker);
tokensOn("a Docker that an ordinary user may use", docker);
clonesOn("a Docker that an ordinary user may use", docker);
