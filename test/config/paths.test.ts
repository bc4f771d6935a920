import { expect, test } from "vitest";
import { globalConfigDir, statePath } from "../../src/config/paths.ts";

test.each([
  [{}, "/home/me/.config/podbot", "/home/me/.local/state/podbot"],
  [{ XDG_CONFIG_HOME: "/c", XDG_STATE_HOME: "/s" }, "/c/podbot", "/s/podbot"],
  [{ XDG_CONFIG_HOME: "", XDG_STATE_HOME: "" }, "/home/me/.config/podbot", "/home/me/.local/state/podbot"],
  // Relative, they would lie in the project, which must not decide what is trusted.
  [{ XDG_CONFIG_HOME: "c", XDG_STATE_HOME: "./s" }, "/home/me/.config/podbot", "/home/me/.local/state/podbot"],
])("with %j, configuration lies in %s and state in %s", (env, config, state) => {
  expect(globalConfigDir(env, "/home/me")).toBe(config);
  expect(statePath(env, "/home/me")).toBe(state);
});
