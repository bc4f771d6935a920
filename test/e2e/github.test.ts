import { engine } from "./engines/engine.ts";
import { clonesOn, tokensOn } from "./github/clones.ts";

// It has no doors, but what lies in a directory that is mounted must be seen there, too.
tokensOn("gVisor", engine("podman-gvisor"));

tokensOn("rootful Podman", engine("podman"));
clonesOn("rootful Podman", engine("podman"), 3);

tokensOn("Docker", engine("docker"));
clonesOn("Docker", engine("docker"));
