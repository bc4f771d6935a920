import { PolicyError } from "../errors.ts";
import type { NetworkRule } from "./network-policy.ts";
import { readDomain } from "./network-rules.ts";

/** Package managers, whose hosts are those that this machine's own settings name. */
export const registryKinds = ["npm", "pypi", "crates", "debian", "go"] as const;
export type RegistryKind = (typeof registryKinds)[number];

interface VendorPreset {
  readonly name: string;
  readonly about: string;
  readonly hosts: readonly string[];
}

/** Services, each with the hosts that its own programs use. */
const vendorPresets: readonly VendorPreset[] = [
  {
    name: "@anthropic",
    about: "Anthropic's models and the login of Claude Code.",
    hosts: ["api.anthropic.com", "platform.claude.com", "claude.ai"],
  },
  {
    name: "@openai",
    about: "OpenAI's models and the login of Codex.",
    hosts: ["api.openai.com", "auth.openai.com", "chatgpt.com"],
  },
  {
    name: "@google",
    about: "Google's models and the login of Gemini CLI.",
    hosts: [
      "generativelanguage.googleapis.com",
      "aiplatform.googleapis.com",
      "cloudcode-pa.googleapis.com",
      "oauth2.googleapis.com",
      "accounts.google.com",
    ],
  },
  {
    name: "@github",
    about: "GitHub: git over HTTPS and SSH, the API, raw files, releases. Whoever can write there can publish there.",
    hosts: [
      "github.com",
      "github.com:22",
      "api.github.com",
      "uploads.github.com",
      "codeload.github.com",
      "raw.githubusercontent.com",
      "objects.githubusercontent.com",
      "release-assets.githubusercontent.com",
    ],
  },
];

const registryAbout: Readonly<Record<RegistryKind, string>> = {
  npm: "npm's registries: of the environment, of `~/.npmrc` and `/etc/npmrc`, else npm's own.",
  pypi: "Python's package indexes: of pip's and uv's variables, of `pip.conf`, else pip's own.",
  crates: "Cargo's registries: of `~/.cargo/config.toml`, and those that it has used.",
  debian: "The sources of apt.",
  go: "Go's module proxies and checksum database: of the environment and `go env -w`, else Go's own.",
};

export const networkPresets: readonly {
  readonly name: string;
  readonly about: string;
  readonly hosts?: readonly string[];
}[] = [...vendorPresets, ...registryKinds.map((kind) => ({ name: `@${kind}`, about: registryAbout[kind] }))];

export interface ChosenPresets {
  readonly rules: readonly NetworkRule[];
  /** Whose hosts must be looked up. */
  readonly registries: readonly RegistryKind[];
}

/** The name that was probably meant. */
type Suggest = (name: string, known: readonly string[]) => string | undefined;

/** `@name` switches a preset on and `!@name` off, the last word holding. */
export function chooseNetworkPresets(toggles: readonly string[], suggest: Suggest): ChosenPresets {
  const chosen = new Set<string>();
  for (const toggle of toggles) {
    const name = toggle.replace(/^!/, "");
    if (!networkPresets.some((preset) => preset.name === name)) throw unknown(toggle, suggest);
    if (toggle.startsWith("!")) chosen.delete(name);
    else chosen.add(name);
  }
  return {
    rules: vendorPresets
      .filter(({ name }) => chosen.has(name))
      .flatMap(({ name, hosts }) => hosts.map((host) => readDomain(host, `preset ${name}`))),
    registries: registryKinds.filter((kind) => chosen.has(`@${kind}`)),
  };
}

function unknown(toggle: string, suggest: Suggest): PolicyError {
  const known = networkPresets.map(({ name }) => name);
  const near = suggest(toggle.replace(/^!/, ""), known);
  return new PolicyError("PRESET_UNKNOWN", `There is no network preset ${JSON.stringify(toggle)}.`, {
    hint: `${near === undefined ? "" : `Did you mean ${near}? `}Known presets: ${known.join(", ")}; put ! before one to switch it off.`,
    details: { preset: toggle, known },
  });
}
