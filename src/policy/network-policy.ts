/** What may be reached. Plain data: a plan holds it. */
export interface NetworkRule {
  /** A name in lower case, a glob (`*.example.org` one label, `**.example.org` one or more), or an address. */
  readonly host: string;
  /** Never empty, but for a rule that denies at every port. */
  readonly ports: readonly number[];
  /** Null: any. `*` stays within a segment, `**` stands for any number of them. */
  readonly paths: readonly string[] | null;
  /** Null: any. In upper case. */
  readonly methods: readonly string[] | null;
  readonly deny: boolean;
  /** Whether it may lead to loopback, private and link-local addresses. */
  readonly local: boolean;
  /** Who says so, for people. */
  readonly origin: string;
}

/** Where a masked secret is put in. */
export interface SecretBinding {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly headers: readonly string[];
  readonly paths: readonly string[] | null;
}

export interface NetworkPolicy {
  /** Everything public is allowed, and recorded. */
  readonly learn: boolean;
  readonly rules: readonly NetworkRule[];
  readonly secrets: readonly SecretBinding[];
  /** Where a name is dialled instead of where it resolves to: `address` or `address:port`. */
  readonly reach: Readonly<Record<string, string>>;
}

export interface Destination {
  readonly host: string;
  readonly port: number;
}

export interface HttpRequest extends Destination {
  readonly method: string;
  /** Without the query; begins with a slash. */
  readonly path: string;
}

export type DenialCode = "host" | "port" | "path" | "method" | "denied" | "spelling" | "address" | "protocol" | "key";

export type Verdict =
  | { readonly kind: "allow"; readonly rule: NetworkRule | null; readonly local: boolean }
  | {
      readonly kind: "deny";
      readonly code: DenialCode;
      readonly rule: NetworkRule | null;
      /** What was asked and why not, in words for a model. */
      readonly message: string;
      /** How the owner can allow it. */
      readonly remedy: string;
    };
