import { engine } from "./engines/engine.ts";
import { clonesOn, tokensOn } from "./github/clones.ts";

// It has no doors, but what lies in a directory that is mounted must be seen there, too.
tokensOn("gVisor", engine("podman-gvisor"));

for (const [title, name] of [
  ["rootful Podman", "podman"],
  ["Docker", "docker"],
] as const) {
  tokensOn(title, engine(name));
  clonesOn(title, engine(name));
}
