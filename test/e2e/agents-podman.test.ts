import { agentsIn } from "./agents/containers.ts";
import { maskedTurns } from "./agents/masked.ts";
import { engine } from "./engines/engine.ts";

agentsIn("rootful Podman", engine("podman"));
maskedTurns("rootful Podman", engine("podman"));
