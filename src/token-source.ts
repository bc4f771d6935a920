/** A secret that opens something for a while. */
export interface Token {
  readonly value: string;
  /** By this machine's clock. */
  readonly expiresAt: Date;
}

/** Whoever can mint a token: a GitHub App's installation, for one. */
export interface TokenSource {
  /** A new one each time; nothing is kept. */
  acquire(signal?: AbortSignal): Promise<Token>;
}
