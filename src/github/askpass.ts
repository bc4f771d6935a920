/** Where a box sees the token. */
export const tokenPathInside = "/run/secrets/ghapp_token";

/**
 * A program for GIT_ASKPASS, in POSIX sh. Git asks in sentences; it answers those about these origins
 * (`https://github.com`) and gives nothing to any other host, whatever a URL makes of the sentence.
 */
export function askpassScript(origins: readonly string[], tokenPath: string = tokenPathInside): string {
  const wrong = [...origins, tokenPath].find((text) => !/^(?:https?:\/\/)?[A-Za-z0-9._/:[\]-]+$/.test(text));
  if (wrong !== undefined || origins.length === 0) throw new TypeError("An origin or a path is none.");
  const ours = origins.map((origin) => `'${origin}'`).join(" ");
  return `#!/bin/sh
# Answers git's questions about ${origins.join(", ")} with the session's token. Others are nobody's business here.
set -u
user=x-access-token
token='${tokenPath}'

refuse() {
  echo "podbot-askpass: $1" >&2
  exit 1
}

# Whether a URL is one of ours: the origin and nothing else, or a path below it. Behind an @ would be another host.
is_ours() {
  for origin in ${ours}; do
    case \${1#"$origin"} in
      "$1" | *[@\\']*) ;;
      "" | /*) return 0 ;;
    esac
  done
  return 1
}

prompt=\${1-}
case $prompt in
  "Username for '"*"': ") url=\${prompt#*\\'} ;;
  "Password for '"*"': ") url=\${prompt#*\\'} ;;
  *) refuse "that is no question of git's about a name or a password" ;;
esac
url=\${url%"': "}
case $prompt in
  Username*)
    is_ours "$url" || refuse "there is no token for that host"
    echo "$user"
    ;;
  *)
    # The name must be ours, too: the token is nobody else's password.
    rest=\${url#*://}
    case $rest in
      "$user"@*) ;;
      *) refuse "there is no token for that name" ;;
    esac
    is_ours "\${url%%://*}://\${rest#"$user"@}" || refuse "there is no token for that host"
    [ -r "$token" ] || refuse "there is no $token"
    cat "$token"
    ;;
esac
`;
}
