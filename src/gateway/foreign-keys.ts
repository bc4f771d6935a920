import { asVariable, parametersOf } from "../policy/network-disguise.ts";

/**
 * Names by which providers take keys, tokens and passwords: GitLab's Private-Token, Google's X-Goog-Api-Key, Azure's
 * api-key, Vault's X-Vault-Token, and whatever else ends so.
 */
const header =
  /(?:^|_)(?:(?:proxy_)?authorization|authentication|auth|(?:api|rapidapi|mashape|app|application|access|auth|secret|private|master|session|functions|subscription|license)_?key|(?:auth|authorization|authentication|access|api|session|security|private|refresh|bearer|user|id)?token|secret|password|passwd|credentials?|jwt|assertion|signature)$/;
/** Some that have names of their own. */
const headers = new Set(["x_jfrog_art_api", "x_honeycomb_team", "x_auth_user", "cookie2"]);
/** They belong to a page, a lock, a place in a list or the gateway, and open nothing. */
const harmless = /(?:^|_)(?:csrf|xsrf|atlassian|lock|sync|continuation)_?token$/;

/**
 * Cookies of networks in front of a server, by which it knows a client again, and no account; and those which a page must
 * repeat in a header, by which a server knows that a request is the page's own.
 */
const infrastructure =
  /^(?:XSRF-TOKEN|csrftoken|__cf_bm|_cfuvid|cf_clearance|__cflb|AWSALB\w*|incap_ses_\w+|visid_incap_\w+)$/;

const parameter =
  /^(?:(?:access|private|job|deploy|oauth|auth|api|id|refresh|feed|rss|session|security|bearer|personal_access|user)_?token|token|jwt|(?:x_)?api_?key|(?:access|secret|auth|subscription|app|application|session|private)_?key|authorization|auth|client_secret|secret|password|passwd|sig|signature|assertion|x_(?:amz|goog)_(?:credential|signature|security_token)|awsaccesskeyid)$/;
/** Where `key` is one. Elsewhere it names an entry of a cache, a field, an issue. */
const takesKey = /(?:^|\.)(?:googleapis\.com|google\.com)$/;

/** Protocols of a WebSocket that browsers put a key in, since they can set no header. */
const keyProtocol = /(?:key|token|bearer|auth(?:orization)?)[._-]/i;

/** Whether a header is one in which keys travel, wherever that is. */
export function carriesKey(name: string, value: string): boolean {
  const variable = asVariable(name);
  if (variable === "sec_websocket_protocol") return keyProtocol.test(value);
  return headers.has(variable) || (header.test(variable) && !harmless.test(variable));
}

/** Whether a cookie is of no account. */
export function isInfrastructure(cookie: string): boolean {
  return infrastructure.test(cookie.slice(0, Math.max(0, cookie.indexOf("="))));
}

/** The parameter of a query by which a request would be another account's; null where there is none. */
export function foreignParameter(query: string, host: string, isOurs: (value: string) => boolean): string | null {
  const [found] =
    parametersOf(query).find(([name, value]) => {
      const variable = asVariable(name);
      const isKey = parameter.test(variable) || (variable === "key" && takesKey.test(host));
      return isKey && value !== "" && !isOurs(value);
    }) ?? [];
  return found ?? null;
}
