import type { Config } from "./types.ts";
import type { ChoiceType, ValueType } from "./value-type.ts";

export interface KeyEntry {
  readonly name: KeyName;
  /** The table that holds the key, absent for keys of the top level. */
  readonly section: string | undefined;
  /** The key's own name within its section. */
  readonly leaf: string;
  readonly about: string;
  readonly type: ValueType;
  readonly default: unknown;
  /** The step of the roadmap that brought the key. */
  readonly step: number;
  readonly widens: Widens<unknown>;
}

/** Whether a value is more than the layers below grant. Asked of project files that the owner has not trusted. */
export type Widens<V> =
  | "never"
  /** Depends on paths as they are on disk, which this room does not know. The plan judges it. */
  | "by-path"
  | {
      /** Asked for a scalar, each element of a list, or each entry of a record, with what the layers below say for it. */
      readonly when: (value: V, below: V | undefined) => boolean;
      readonly why: string;
    };

type Root = "engine_socket" | "image" | "commands" | "secrets";
type Section = Exclude<keyof Config, Root>;
export type KeyName = Root | { [S in Section]: `${S}.${keyof Config[S] & string}` }[Section];

/** The value of a key in `Config`. */
export type ValueOf<N extends KeyName> = N extends `${infer S extends Section}.${infer L}`
  ? Config[S][L & keyof Config[S]]
  : Config[N & Root];

export type Key<V> = {
  readonly about: string;
  readonly type: TypeOf<NonNullable<V>>;
  readonly step: number;
  readonly widens: Widens<PartOf<NonNullable<V>>>;
} & (undefined extends V ? unknown : { readonly default: V });

/** What is judged one by one: the elements of a list, the entries of a record, or the value itself. */
type PartOf<V> = V extends readonly (infer E)[] ? E : V extends Readonly<Record<string, infer E>> ? E : V;

/** Holds the table to `Config`: a choice must offer the values of its union, a flag must be a boolean, and so on. */
type TypeOf<V> = [V] extends [boolean]
  ? { readonly kind: "flag" }
  : [V] extends [number]
    ? Extract<ValueType, { kind: "integer" | "number" }>
    : [V] extends [string]
      ? string extends V
        ? { readonly kind: "text" }
        : ChoiceType<V>
      : [V] extends [readonly string[]]
        ? Extract<ValueType, { kind: "list" }>
        : [V] extends [readonly unknown[]]
          ? { readonly kind: "rules" }
          : Extract<ValueType, { kind: "record" }>;
