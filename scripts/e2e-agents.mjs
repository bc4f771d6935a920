// Installs the agents that take real turns in the slow suite and in the bench.
import { importSource } from "./import-source.mjs";

const { installAgents } = await importSource("test/e2e/agents/installation.ts");
installAgents();
