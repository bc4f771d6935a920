import { agentsIn } from "./agents/containers.ts";
import { maskedTurns } from "./agents/masked.ts";
import { engine } from "./engines/engine.ts";

agentsIn("rootless Podman", engine("podman-rootless"));
maskedTurns("rootless Podman", engine("podman-rootless"));
