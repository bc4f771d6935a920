import { execOnPipes, execOnTerminal } from "./exec.ts";
import { quit } from "./quit.ts";
import type { Command, Connector, Process, Sandbox, Size, TerminalProcess } from "./sandbox.ts";
import { upload } from "./upload.ts";

/** A sandbox to work in, given a way to its warden. It holds nothing itself: there is nothing to close. */
export function openSandbox(connector: Connector): Sandbox {
  function exec(command: Command): Promise<Process>;
  function exec(command: Command, terminal: Size): Promise<TerminalProcess>;
  function exec(command: Command, terminal?: Size): Promise<Process | TerminalProcess> {
    return terminal === undefined ? execOnPipes(connector, command) : execOnTerminal(connector, command, terminal);
  }
  return {
    id: connector.id,
    exec,
    upload: (tar, target) => upload(connector, tar, target),
    quit: (graceMs) => quit(connector, graceMs),
  };
}
