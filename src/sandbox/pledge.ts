/** A promise that is settled from elsewhere. Nobody has to wait for it: left alone, a broken one is no crash. */
export class Pledge<T> {
  readonly promise: Promise<T>;
  keep!: (value: T) => void;
  break!: (reason: unknown) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.keep = resolve;
      this.break = reject;
    });
    this.promise.catch(() => {});
  }
}
