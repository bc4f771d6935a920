import { describe, expect, test } from "vitest";
import { Lookups } from "../../src/gateway/lookups.ts";

const address = ["192.0.2.1"];

/** Whoever is asked for waits until somebody answers for it. */
function slowWorld() {
  const asked: string[] = [];
  const answers = new Map<string, (addresses: readonly string[]) => void>();
  const lookups = new Lookups((host) => {
    asked.push(host);
    return new Promise((resolve) => answers.set(host, resolve));
  });
  return { asked, lookups, answer: (host: string, addresses = address) => answers.get(host)?.(addresses) };
}

describe("names are looked up", () => {
  test("two at a time, in the order in which they were asked for", async () => {
    const { asked, lookups, answer } = slowWorld();
    const found = ["a", "b", "c", "d"].map((host) => lookups.find(host, 10_000));
    expect(asked).toEqual(["a", "b"]);
    answer("b");
    expect(await found[1]).toEqual(address);
    await expect.poll(() => asked).toEqual(["a", "b", "c"]);
    for (const host of ["a", "c"]) answer(host);
    await expect.poll(() => asked).toEqual(["a", "b", "c", "d"]);
    answer("d");
    expect(await Promise.all(found)).toEqual([address, address, address, address]);
  });

  test("and not at all when nobody waits for them any more", async () => {
    const { asked, lookups, answer } = slowWorld();
    const first = ["a", "b"].map((host) => lookups.find(host, 10_000));
    await expect(lookups.find("late", 10)).rejects.toThrow("in time");
    for (const host of ["a", "b"]) answer(host);
    await Promise.all(first);
    expect(asked).toEqual(["a", "b"]);
  });

  test("with an end to how many may wait", async () => {
    const { lookups } = slowWorld();
    const waiting = Array.from({ length: 1_026 }, (_, at) => lookups.find(`${at}`, 200));
    await expect(lookups.find("one more", 10_000)).rejects.toThrow("too many");
    expect(new Set((await Promise.allSettled(waiting)).map(({ status }) => status))).toEqual(new Set(["rejected"]));
  });
});

describe("a name is unknown", () => {
  test("where that was the answer, or none of its addresses is one", async () => {
    const lookups = new Lookups(async (host) => {
      if (host === "empty") return [];
      throw new Error("ENOTFOUND");
    });
    await expect(lookups.find("missing", 1_000)).rejects.toThrow("ENOTFOUND");
    await expect(lookups.find("empty", 1_000)).rejects.toThrow("no address");
    expect(["missing", "empty", "other"].map((host) => lookups.isUnknown(host))).toEqual([true, true, false]);
  });

  test("not where nobody has answered, until somebody does", async () => {
    const { lookups, answer } = slowWorld();
    await expect(lookups.find("slow", 10)).rejects.toThrow("in time");
    expect(lookups.isUnknown("slow")).toBe(false);
    answer("slow", []);
    await expect.poll(() => lookups.isUnknown("slow")).toBe(true);
    const again = lookups.find("slow", 10_000);
    answer("slow");
    expect(await again).toEqual(address);
    expect(lookups.isUnknown("slow")).toBe(false);
  });

  test("among no more than so many", async () => {
    const lookups = new Lookups(async () => []);
    for (let at = 0; at < 1_025; at++) await lookups.find(`${at}`, 1_000).catch(() => {});
    expect([lookups.isUnknown("0"), lookups.isUnknown("1024")]).toEqual([false, true]);
  });
});
