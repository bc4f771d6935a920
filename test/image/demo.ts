import type { ImageAgent } from "../../src/image/recipe.ts";

/** An agent that nobody knows. */
export function demoAgent(name: string): ImageAgent {
  return {
    name,
    title: `The ${name}`,
    program: name,
    version: ["--version"],
    package: { name: `@x/${name}`, version: "1.0.0", scripts: false, debian: [] },
  };
}
