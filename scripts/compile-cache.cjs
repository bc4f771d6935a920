// Writes dist/main.cache: the program as V8 compiled it, with the functions that a short run uses.
const { mkdirSync, mkdtempSync, rmSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");

const dist = join(__dirname, "..", "dist");
const world = mkdtempSync(join(tmpdir(), "podbot-build-"));
mkdirSync(join(world, "project"));
process.chdir(join(world, "project"));
process.env.HOME = world;
process.argv = [process.argv[0], join(dist, "podbot.cjs"), "sandbox", "--quiet", "--", "true"];
process.on("exit", () => {
  writeFileSync(join(dist, "main.cache"), script.createCachedData());
  rmSync(world, { recursive: true, force: true });
  // Where no sandbox can be started the cache holds less, but the build is no worse for it.
  process.exitCode = 0;
});
const script = require(join(dist, "podbot.cjs"));
