import { hostedAgents } from "./agents/hosted.ts";
import { engine } from "./engines/engine.ts";

hostedAgents("rootless Podman", engine("podman-rootless"));
