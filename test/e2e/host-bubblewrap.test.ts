import { hostedAgents } from "./agents/hosted.ts";

hostedAgents("bubblewrap", null);
