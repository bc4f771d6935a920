/** Variables that programs need and that hold no secret, whatever machine they run on. `*` stands for any ending. */
export const passedIntoImages: readonly string[] = [
  "LANG",
  "LANGUAGE",
  "LC_*",
  "TZ",
  // the terminal
  "TERM",
  "TERM_PROGRAM",
  "TERM_PROGRAM_VERSION",
  "COLORTERM",
  "COLUMNS",
  "LINES",
  "NO_COLOR",
  "FORCE_COLOR",
  "CLICOLOR",
  "CLICOLOR_FORCE",
  "EDITOR",
  "VISUAL",
  "PAGER",
  "CI",
  "NODE_ENV",
  // who commits
  "GIT_AUTHOR_NAME",
  "GIT_AUTHOR_EMAIL",
  "GIT_COMMITTER_NAME",
  "GIT_COMMITTER_EMAIL",
];

/** And those that speak of the host's own files, for where these can be seen. */
export const passedByDefault: readonly string[] = [
  ...passedIntoImages,
  // who and where
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "PATH",
  // certificate bundles: paths, without which nothing works behind a company's proxy
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "NODE_EXTRA_CA_CERTS",
  "CURL_CA_BUNDLE",
  "REQUESTS_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "PIP_CERT",
  "AWS_CA_BUNDLE",
  // where toolchains live
  "XDG_CONFIG_HOME",
  "XDG_CACHE_HOME",
  "XDG_DATA_HOME",
  "XDG_STATE_HOME",
  "CARGO_HOME",
  "RUSTUP_HOME",
  "GOPATH",
  "GOROOT",
  "GOFLAGS",
  "JAVA_HOME",
  "NVM_DIR",
  "PNPM_HOME",
  "BUN_INSTALL",
  "PYENV_ROOT",
  "VIRTUAL_ENV",
  "CONDA_PREFIX",
];

/** Whether a list of names and `PREFIX*` patterns lets a variable in. */
export function passes(name: string, patterns: readonly string[]): boolean {
  if (patterns.includes(name)) return true;
  return patterns.some((pattern) => pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1)));
}
