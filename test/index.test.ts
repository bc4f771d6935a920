import { expect, expectTypeOf, test } from "vitest";
import * as library from "../src/index.ts";

test("the library exports these names and no others", () => {
  expect(Object.keys(library).sort()).toEqual([
    "ConfigError",
    "FilesystemError",
    "MachineError",
    "PodbotError",
    "PolicyError",
    "UsageError",
    "WallError",
    "configJsonSchema",
    "decisionFor",
    "detectSandbox",
    "diagnose",
    "errorTable",
    "isAble",
    "listTrusted",
    "loadConfig",
    "planSandbox",
    "presets",
    "revokeTrust",
    "trustProject",
  ]);
});

test("the library names these types; the compiler reports one that is gone", () => {
  type Names = [
    library.Birth,
    library.CommandDecision,
    library.Config,
    library.ErrorCode,
    library.Exit,
    library.Finding,
    library.Gap,
    library.HeldName,
    library.Inside,
    library.Layer,
    library.LayerName,
    library.LoadedConfig,
    library.LoadOptions,
    library.Operation,
    library.Origin,
    library.PartialConfig,
    library.PathDecision,
    library.Plan,
    library.PlannedSandbox,
    library.Preset,
    library.ProjectFile,
    library.SandboxOptions,
    library.Signal,
    library.Stdio,
    library.Widening,
  ];
  expectTypeOf<Names>().not.toBeAny();
});
