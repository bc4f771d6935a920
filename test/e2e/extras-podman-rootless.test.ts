import { becomeCaller, engine, newEngine } from "./engines/engine.ts";
import { extras } from "./extras.ts";

becomeCaller(engine("podman-rootless"));
extras("rootless Podman", () => newEngine("podman-rootless"), true);
