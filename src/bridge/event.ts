export type Direction = "to-agent" | "to-client";

/** The id of a request, as both ends write it. */
export type FrameId = string | number | null;

/** What the bridge tells whoever runs it; nothing of it is ever written to the client. */
export type BridgeEvent =
  | { readonly kind: "request-denied"; readonly method: string; readonly id: FrameId }
  | { readonly kind: "notification-dropped"; readonly method: string }
  /** Members of a message that were taken out, or set so that they promise nothing. */
  | { readonly kind: "capabilities-masked"; readonly direction: Direction; readonly names: readonly string[] }
  | {
      readonly kind: "frame-refused";
      readonly direction: Direction;
      readonly reason: string;
      readonly bytes: number;
    }
  | {
      readonly kind: "question-decided";
      readonly method: string;
      readonly decision: "allow" | "deny" | "cancel";
    }
  /** The client's output ended. */
  | { readonly kind: "client-closed" }
  /** Nobody reads what the agent writes any more. */
  | { readonly kind: "client-gone" }
  /** The agent reads no more. */
  | { readonly kind: "agent-deaf" }
  /** The agent's output ended. */
  | { readonly kind: "agent-closed" };
