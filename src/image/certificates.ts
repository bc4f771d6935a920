const certificate = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;

/** The certificates of a PEM file, each as one line of base64: the same one always reads the same. */
function certificatesIn(pem: string): readonly string[] {
  const bodies = [...pem.matchAll(certificate)].map(([, body]) => (body as string).replace(/\s+/g, ""));
  return bodies.filter((body) => body !== "");
}

/**
 * What a host trusts beyond what everybody trusts: a company's own authority, say. As PEM, each once, in an order that
 * does not depend on where it was found.
 */
export function extraCertificates(bundles: readonly string[], known: readonly string[]): readonly string[] {
  const ordinary = new Set(known.flatMap(certificatesIn));
  const extra = new Set(bundles.flatMap(certificatesIn).filter((each) => !ordinary.has(each)));
  return [...extra].sort().map(pemOf);
}

function pemOf(body: string): string {
  const lines = body.replace(/.{64}(?=.)/g, "$&\n");
  return ["-----BEGIN CERTIFICATE-----", lines, "-----END CERTIFICATE-----", ""].join("\n");
}

/** Where the settings of npm name a file of certificates. */
export function cafileIn(npmrc: string): string | null {
  const [, file] = /^\s*cafile\s*=\s*(.+?)\s*$/m.exec(npmrc) ?? [];
  return file === undefined ? null : file.replace(/^(["'])(.*)\1$/, "$2");
}
