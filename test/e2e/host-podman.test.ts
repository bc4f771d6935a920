import { hostedAgents } from "./agents/hosted.ts";
import { engine } from "./engines/engine.ts";

hostedAgents("rootful Podman", engine("podman"));
