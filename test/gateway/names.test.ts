// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressKind } from "../../src/gateway/address.ts";
import { Names } from "../../src/gateway/names.ts";

const capacity = 131_069;
/** Some that give addresses from the first one on, and from the last. */
const offset = fc.oneof(fc.nat(capacity - 1), fc.constantFrom(0, capacity - 1));

describe("a name", () => {
  test("has one address, which leads back to it", () => {
    fc.assert(
      fc.property(offset, fc.uniqueArray(fc.domain()), (from, all) => {
        const names = new Names(from);
        const addresses = all.map((name) => names.addressOf(name) as string);
        expect(new Set(addresses).size).toBe(all.length);
        expect(all.map((name) => names.addressOf(name))).toEqual(addresses);
        expect(addresses.map((address) => names.nameOf(address))).toEqual(all);
        expect(addresses.map((address) => names.nameOf(`::ffff:${address}`))).toEqual(all);
        for (const address of addresses) expect(addressKind(address)).toBe("reserved");
      }),
    );
  });

  test("has another address in another session, most likely", () => {
    const addresses = Array.from({ length: 5 }, () => new Names().addressOf("example.org"));
    expect(new Set(addresses).size).toBeGreaterThan(1);
  });

  test("may look like part of any object", () => {
    const names = new Names(0);
    expect(names.addressOf("__proto__")).toBe("198.18.0.2");
    expect(names.addressOf("constructor")).toBe("198.18.0.3");
    expect(names.nameOf("198.18.0.2")).toBe("__proto__");
  });
});

describe("an address", () => {
  test("that was not given out has no name", () => {
    fc.assert(
      fc.property(offset, fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), (from, address) => {
        expect(new Names(from).nameOf(address)).toBeNull();
      }),
    );
  });

  test.each([
    "198.18.0.0",
    "198.18.0.1",
    "198.19.255.255",
    "198.18.0.002",
    "198.18.00.2",
    "198.18.0.258",
    "198.18.256.2",
    "198.20.0.2",
    " 198.18.0.2",
    "198.18.0.2 ",
    "198.18.0.2\n",
    "::198.18.0.2",
    "::FFFF:198.18.0.2",
  ])("that reads %j has none, though many were given out", (address) => {
    const names = new Names(0);
    for (let count = 0; count < 1000; count += 1) names.addressOf(`n${count}.example`);
    expect(names.nameOf("198.18.0.2")).toBe("n0.example");
    expect(names.nameOf(address)).toBeNull();
  });

  test("is left for what a rule names, when a box has asked for all others", () => {
    const names = new Names();
    let asked = 0;
    const exhaust = (named: "pattern" | null) => {
      while (names.addressOf(`n${asked}.example`, named) !== null) asked += 1;
    };
    exhaust(null);
    const pattern = names.addressOf("a.pattern.example", "pattern");
    expect(pattern).not.toBeNull();
    exhaust("pattern");
    expect(names.addressOf("b.pattern.example", "pattern")).toBeNull();
    const named = names.addressOf("named.example", "name") as string;
    expect(names.nameOf(named)).toBe("named.example");
    expect(names.addressOf("a.pattern.example")).toBe(pattern);
  });

  test("is never given to a second name: when none is left, there is none", () => {
    const names = new Names(77_777);
    const given = new Set<string | null>();
    for (let count = 0; count < capacity; count += 1) given.add(names.addressOf(`n${count}`, "name"));
    expect(given.size).toBe(capacity);
    for (const never of [null, "198.18.0.0", "198.18.0.1", "198.19.255.255"]) expect(given).not.toContain(never);
    expect(names.addressOf("one.more", "name")).toBeNull();
    expect(names.nameOf(names.addressOf("n0") as string)).toBe("n0");
    for (const never of ["198.18.0.0", "198.18.0.1", "198.19.255.255"]) expect(names.nameOf(never)).toBeNull();
  });
});
