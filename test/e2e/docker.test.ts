import { conformance } from "../wall/conformance.ts";
import { surroundings } from "./around.ts";
import { boxes } from "./box.ts";
import { openEngineSite } from "./engine-site.ts";
import { engine } from "./engines/engine.ts";
import { flows } from "./flow.ts";

const docker = engine("docker");
conformance("Docker", () => openEngineSite(docker));
boxes("Docker", docker, "the engine's part");
surroundings("Docker", docker);
flows("Docker", docker, "the engine's part");
