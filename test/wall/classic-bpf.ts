/** What the kernel shows a seccomp filter. */
export interface SeccompData {
  readonly nr: number;
  readonly arch: number;
  readonly args: readonly bigint[];
}

export interface Outcome {
  /** The filter's return value. */
  readonly verdict: number;
  readonly steps: number;
}

/** Runs a classic BPF program as the kernel would; whatever the kernel's checker refuses to load is an error. */
export function runFilter(program: Uint8Array, { nr, arch, args }: SeccompData): Outcome {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, nr, true);
  data.setUint32(4, arch, true);
  for (const [index, value] of args.entries()) data.setBigUint64(16 + 8 * index, value, true);

  const view = new DataView(program.buffer, program.byteOffset, program.byteLength);
  if (program.length === 0 || program.length % 8 !== 0) throw new Error("not a sequence of struct sock_filter");
  let accumulator = 0;
  for (let at = 0, steps = 1; 8 * at < program.length; at += 1, steps += 1) {
    const code = view.getUint16(8 * at, true);
    const [yes, no] = [view.getUint8(8 * at + 2), view.getUint8(8 * at + 3)];
    const k = view.getUint32(8 * at + 4, true);
    const jump = (condition: boolean) => {
      at += condition ? yes : no;
    };
    if (code === 0x20) accumulator = data.getUint32(k, true);
    else if (code === 0x54) accumulator = (accumulator & k) >>> 0;
    else if (code === 0x15) jump(accumulator === k);
    else if (code === 0x35) jump(accumulator >= k);
    else if (code === 0x45) jump((accumulator & k) !== 0);
    else if (code === 0x06) return { verdict: k, steps };
    else throw new Error(`unknown instruction 0x${code.toString(16)} at ${at}`);
  }
  throw new Error("the program ends without a verdict");
}
