import { type HttpRequest, judgeRequest, type NetworkPolicy, type NetworkRule } from "../src/policy/network.ts";
import { rule } from "./gateway-parties.ts";
import { atMost, type Line } from "./measure.ts";

const rulesInAll = 200;
const samples = 20_000;

/** How long it takes to judge one request by many rules of all kinds. */
export function verdictLine(): Line {
  const policy: NetworkPolicy = { learn: false, rules: makeRules(), secrets: [], reach: {} };
  const requests = makeRequests();
  const taken: number[] = [];
  for (let at = -2_000; at < samples; at++) {
    const request = requests[Math.abs(at) % requests.length] as HttpRequest;
    const began = process.hrtime.bigint();
    judgeRequest(policy, request);
    const nanoseconds = Number(process.hrtime.bigint() - began);
    if (at >= 0) taken.push(nanoseconds / 1_000);
  }
  taken.sort((a, b) => a - b);
  const [half, most] = [0.5, 0.99].map((part) => taken[Math.floor(part * samples)] as number) as [number, number];
  return atMost(
    `a verdict by ${rulesInAll} rules, 99 of 100 (half of them: ${half.toFixed(1)} µs)`,
    most,
    { guard: 100 },
    "µs",
  );
}

function makeRules(): readonly NetworkRule[] {
  const kinds = [
    (at: number) => rule(`host-${at}.example.com`, null),
    (at: number) => rule(`*.zone-${at}.example.com`, null),
    (at: number) => rule(`**.deep-${at}.example.org`, null),
    (at: number) => rule(`api-${at}.example.com`, [`/repos/*/*/issues/**`, `/v${at}/**`, "/health"]),
    (at: number) => ({ ...rule(`**.shared.example.net`, [`/team-${at}/**/files/*`]), methods: ["GET", "HEAD"] }),
    (at: number) => ({ ...rule(`*.shared.example.net`, [`/team-${at}/private/**`]), deny: true }),
  ];
  return Array.from({ length: rulesInAll }, (_, at) => (kinds[at % kinds.length] as (at: number) => NetworkRule)(at));
}

/** Some are allowed and some are not. The last matches the host of many rules, but none of their paths. */
function makeRequests(): readonly HttpRequest[] {
  const ask = (host: string, path: string, method = "GET"): HttpRequest => ({ host, port: 443, method, path });
  return [
    ask("host-192.example.com", "/"),
    ask("a.zone-193.example.com", "/some/where"),
    ask("a.b.c.deep-194.example.org", "/some/where/else"),
    ask("api-195.example.com", "/repos/owner/name/issues/12/comments"),
    ask("api-195.example.com", "/repos/owner/name/pulls/12"),
    ask("files.shared.example.net", "/team-196/a/b/c/d/e/files/report.txt"),
    ask("files.shared.example.net", "/team-197/private/a/b/c"),
    ask("files.shared.example.net", "/team-196/a/b/c/files/report.txt", "POST"),
    ask("nowhere.example.com", "/"),
    ask("files.shared.example.net", `/nobody/${"segment/".repeat(30)}end`),
  ];
}
