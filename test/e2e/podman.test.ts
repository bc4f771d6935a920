import { conformance } from "../wall/conformance.ts";
import { surroundings } from "./around.ts";
import { boxes } from "./box.ts";
import { openEngineSite } from "./engine-site.ts";
import { engine } from "./engines/engine.ts";
import { flows } from "./flow.ts";
import { privateService } from "./private-service.ts";

const podman = engine("podman");
conformance("rootful Podman", () => openEngineSite(podman));
boxes("rootful Podman", podman, "everything");
surroundings("rootful Podman", podman);
flows("rootful Podman", podman, "everything");
privateService("rootful Podman", "podman");
