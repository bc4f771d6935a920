import { conformance } from "../wall/conformance.ts";
import { surroundings } from "./around.ts";
import { boxes } from "./box.ts";
import { openEngineSite } from "./engine-site.ts";
import { becomeCaller, engine } from "./engines/engine.ts";
import { flows } from "./flow.ts";
import { privateService } from "./private-service.ts";

const podman = engine("podman-rootless");
becomeCaller(podman);
conformance("rootless Podman", () => openEngineSite(podman));
boxes("rootless Podman", podman, "the engine's part");
surroundings("rootless Podman", podman);
flows("rootless Podman", podman, "the engine's part");
privateService("rootless Podman", "podman-rootless");
