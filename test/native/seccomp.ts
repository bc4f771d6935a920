/** A seccomp filter, as bubblewrap's --seccomp takes it, under which one system call does not exist. */
export function answerEnosys(call: keyof typeof numbers): Buffer {
  return Buffer.concat([
    instruction(0x20, 0, 0, 0), // load the number of the call
    instruction(0x15, 0, 1, numbers[call]), // if it is not this one, skip the next
    instruction(0x06, 0, 0, 0x00050000 | 38), // answer ENOSYS
    instruction(0x06, 0, 0, 0x7fff0000), // let it pass
  ]);
}

/** The same on x64 and arm64. */
const numbers = { close_range: 436, landlock_create_ruleset: 444 } as const;

function instruction(code: number, whenTrue: number, whenFalse: number, operand: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(whenTrue, 2);
  bytes.writeUInt8(whenFalse, 3);
  bytes.writeUInt32LE(operand, 4);
  return bytes;
}
