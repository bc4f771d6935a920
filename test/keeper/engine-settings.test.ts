import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { settingsExtras } from "../../src/keeper/engine-settings.ts";

const home = mkdtempSync(join(tmpdir(), "podbot-engine-settings-"));
const own = join(home, ".config/containers");
afterAll(() => rmSync(home, { recursive: true }));
beforeEach(() => {
  rmSync(own, { recursive: true, force: true });
  mkdirSync(join(own, "containers.conf.d"), { recursive: true });
});

const write = (name: string, text: string) => writeFileSync(join(own, name), text);
/** Of this machine's own files nothing is known here. */
const extras = (env: Readonly<Record<string, string>> = {}, uid = 1000) =>
  settingsExtras({ HOME: home, ...env }, uid).filter((line) => line.includes(home));

describe("what Podman's settings add to containers is told:", () => {
  test("directories, devices, and a filter that is left out", () => {
    write(
      "containers.conf",
      '[containers]\nvolumes = ["/a:/b"]\ndevices = ["/dev/fuse"]\nenv = ["A=1"]\npids_limit = 5\n',
    );
    write("containers.conf.d/10.conf", '[containers]\nseccomp_profile = "unconfined"\nvolumes = []\n');
    write("containers.conf.d/README", '[containers]\nvolumes = ["/a:/b"]\n');
    expect(extras()).toEqual([
      `volumes in ${own}/containers.conf`,
      `devices in ${own}/containers.conf`,
      `seccomp_profile in ${own}/containers.conf.d/10.conf`,
    ]);
    // Root's Podman reads none in a home.
    expect(extras({}, 0)).toEqual([]);
  });

  test("what a mounts.conf names and is there, but not at /run/secrets, where the box has something of its own", () => {
    write("mounts.conf", `# none\n${home}:/run/secrets\n${home}:/elsewhere\n${home}/missing:/missing\n`);
    expect(extras()).toEqual([`/elsewhere in ${own}/mounts.conf`]);
  });

  test("nothing, where nothing is set or nothing can be read", () => {
    expect(extras()).toEqual([]);
    write("containers.conf", '[engine]\nruntime = "runc"\n[containers]\nlog_driver = "k8s-file"\n');
    expect(extras()).toEqual([]);
    write("containers.conf", "no settings [");
    expect(extras()).toEqual([]);
  });

  test("the file that a variable names, which stands alone", () => {
    write("containers.conf", '[containers]\nvolumes = ["/a:/b"]\n');
    write("other.conf", '[containers]\ndevices = ["/dev/fuse"]\n');
    expect(extras({ CONTAINERS_CONF: join(own, "other.conf") })).toEqual([`devices in ${own}/other.conf`]);
  });
});
