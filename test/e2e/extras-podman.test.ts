import { newEngine } from "./engines/engine.ts";
import { extras } from "./extras.ts";

extras("rootful Podman", () => newEngine("podman"));
