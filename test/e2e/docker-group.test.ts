import { conformance } from "../wall/conformance.ts";
import { boxes } from "./box.ts";
import { openEngineSite } from "./engine-site.ts";
import { becomeCaller, engine } from "./engines/engine.ts";
import { flows } from "./flow.ts";

const docker = engine("docker-group");
becomeCaller(docker);
conformance("a Docker that an ordinary user may use", () => openEngineSite(docker));
boxes("a Docker that an ordinary user may use", docker, "the caller's part");
flows("a Docker that an ordinary user may use", docker, "the caller's part");
