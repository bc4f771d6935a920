// @module-tag security
import { fuzzDoors, newSeed } from "./fuzzing.ts";

fuzzDoors({ count: 300, seed: newSeed() });
