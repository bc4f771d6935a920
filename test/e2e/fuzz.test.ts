// @module-tag security
import { fuzzDoors, newSeed } from "../gateway/fuzzing.ts";

// What `make test` does, for a minute.
fuzzDoors({ count: 6_000, seed: newSeed() });
