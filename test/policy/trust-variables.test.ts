import { expect, test } from "vitest";
import { trustPlaces, trustVariables } from "../../src/policy/trust-variables.ts";

test("every variable by which programs find whom to trust leads into Podbot's corner", () => {
  const places = Object.values(trustPlaces);
  for (const [name, value] of Object.entries(trustVariables)) {
    expect(name).toMatch(/^[A-Z_]+$/);
    expect(places.some((place) => value.endsWith(place))).toBe(true);
  }
  expect(trustVariables).toMatchObject({
    SSL_CERT_FILE: "/run/podbot/trust/bundle.pem",
    NODE_EXTRA_CA_CERTS: "/run/podbot/trust/authority.pem",
    CODEX_CA_CERTIFICATE: "/run/podbot/trust/bundle.pem",
  });
});
