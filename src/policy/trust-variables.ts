/** Where the session's certificate authority lies inside, beside those whom the machine trusts. */
export const trustPlaces = {
  /** The machine's roots, and the session's authority after them. */
  bundle: "/run/podbot/trust/bundle.pem",
  /** The session's authority alone. */
  authority: "/run/podbot/trust/authority.pem",
  /** The same as the bundle, as Java reads it. */
  truststore: "/run/podbot/trust/truststore.jks",
} as const;

/** Java says that it has read it, and its store takes longer to make than all the rest: it is only for where Java is. */
export const javaOptions = "JAVA_TOOL_OPTIONS";

/** The variables by which programs find whom to trust. */
export const trustVariables: Readonly<Record<string, string>> = {
  // OpenSSL, and so Ruby, Python, wget and Codex; Go and uv too.
  SSL_CERT_FILE: trustPlaces.bundle,
  // Added to those that Node brings: a short file, since each Node reads it as it starts.
  NODE_EXTRA_CA_CERTS: trustPlaces.authority,
  CURL_CA_BUNDLE: trustPlaces.bundle,
  REQUESTS_CA_BUNDLE: trustPlaces.bundle,
  PIP_CERT: trustPlaces.bundle,
  GIT_SSL_CAINFO: trustPlaces.bundle,
  CARGO_HTTP_CAINFO: trustPlaces.bundle,
  AWS_CA_BUNDLE: trustPlaces.bundle,
  CODEX_CA_CERTIFICATE: trustPlaces.bundle,
  // Added to those that Deno brings.
  DENO_CERT: trustPlaces.bundle,
  [javaOptions]: `-Djavax.net.ssl.trustStore=${trustPlaces.truststore}`,
};
