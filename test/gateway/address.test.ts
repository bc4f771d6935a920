import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AddressKind, addressKind, isAmong, isPublic } from "../../src/gateway/address.ts";
import { parseAddress } from "../../src/gateway/address-bytes.ts";

/** The first and the last address of ranges, and the neighbours beyond them. */
const table: Readonly<Record<AddressKind, readonly string[]>> = {
  public: [
    ...["1.0.0.0", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"],
    ...["126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"],
    ...["191.255.255.255", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"],
    ...["198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"],
    ...["2000::", "2001:200::", "2001:4860:4860::8888", "2606:4700::1111", "2a00::1", "3ffe:ffff::", "3fff:1000::"],
    ...["::ffff:8.8.8.8", "::ffff:808:808", "::8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "::ffff:0:808:808"],
  ],
  loopback: [
    ...["127.0.0.0", "127.0.0.1", "127.1.2.3", "127.255.255.255", "::1"],
    ...["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:0:7f00:1"],
  ],
  private: [
    ...["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
    ...["100.64.0.0", "100.127.255.255", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "2002:c0a8:101::1"],
    ...["fc00::", "fd00::1", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::", "feff::1"],
  ],
  "link-local": [
    ...["169.254.0.0", "169.254.169.253", "169.254.255.255", "::ffff:169.254.1.1", "64:ff9b::a9fe:101"],
    ...["fe80::", "fe80::1", "febf:ffff::1"],
  ],
  metadata: [
    ...["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"],
    ...["fd20:ce::254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"],
  ],
  reserved: [
    ...["0.0.0.0", "0.0.0.1", "0.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.1", "192.88.99.1"],
    ...["198.18.0.0", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.0", "239.255.255.255"],
    ...["240.0.0.0", "255.255.255.254", "255.255.255.255", "::", "::2", "::ffff:0.0.0.0", "::ffff:198.18.0.1"],
    ...["64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:1ff::", "2001:db8::1"],
    ...["3fff::1", "4000::", "5f00::1", "fbff::1", "fe00::1", "ff00::", "ff02::1", "::ffff:255.255.255.255"],
    ...["2002:e000:1::", "1::", "64:ff9b::"],
  ],
};

describe.each(Object.entries(table))("%s", (kind, addresses) => {
  test.each(addresses)("is %s", (address) => {
    expect(addressKind(address)).toBe(kind);
    expect(isPublic(address)).toBe(kind === "public");
  });
});

describe("a network", () => {
  const networks = ["93.184.215.14/24", "2606:2800:21f::1/64", "not a network"];

  test.each(["93.184.215.0", "93.184.215.255", "2606:2800:21f::ffff", "::ffff:93.184.215.1"])("holds %s", (address) => {
    expect(isAmong(networks, address)).toBe(true);
  });

  test.each(["93.184.214.255", "93.184.216.0", "2606:2800:21f:1::1", "::1", "localhost"])("holds no %s", (address) => {
    expect(isAmong(networks, address)).toBe(false);
  });
});

describe("no address", () => {
  test.each([
    ...["", "localhost", "1.2.3", "1.2.3.4.5", "127.1", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "2130706433"],
    ...[
      "256.0.0.1",
      "1.2.3.4 ",
      " 1.2.3.4",
      "1.2.3.4\n",
      "1.2.3.-4",
      "[::1]",
      "::1%lo",
      "fe80::1%eth0:1.2",
      "1.2.3.4%x",
    ],
    ...["FE80::1", "2001:DB8::1", "0:0:0:0:0:0:0:1", "::0001", "::0.0.0.1", "::0:1", "2001:db8::1:0:0:0", "1::2::3"],
    ...[
      "2001:db8::0:0:1:1:1",
      "2001:0db8::1",
      "::ffff:127.0.0.01",
      "::FFFF:127.0.0.1",
      "64:ff9b::1.2.3.4",
      "1:2:3:4:5:6:7",
    ],
    ...["1:2:3:4:5:6:7:8:9", "1::2:3:4:5:6:7", "::10000", ":", ":::"],
  ])("is %j", (written) => {
    expect(parseAddress(written)).toBeNull();
    expect(addressKind(written)).toBeNull();
    expect(isPublic(written)).toBe(false);
  });
});

/** By the rules of URLs, which are another's. */
const spelledByUrl = (words: readonly number[]) => {
  return new URL(`http://[${words.map((word) => word.toString(16)).join(":")}]/`).hostname.slice(1, -1);
};

describe("every address", () => {
  const byte = fc.nat(255);
  const word = fc.oneof(fc.constant(0), fc.nat(0xffff));
  const bytes4 = fc.tuple(byte, byte, byte, byte);

  test("of version 4 is read as it is written", () => {
    fc.assert(
      fc.property(bytes4, (bytes) => {
        expect(parseAddress(bytes.join("."))).toEqual(Uint8Array.from(bytes));
      }),
    );
  });

  test("of version 6 is read as URLs write it", () => {
    fc.assert(
      fc.property(fc.array(word, { minLength: 8, maxLength: 8 }), (words) => {
        expect(parseAddress(spelledByUrl(words))).toEqual(
          Uint8Array.from(words.flatMap((each) => [each >> 8, each & 255])),
        );
      }),
      { numRuns: 500 },
    );
  });

  test("of version 6 has one spelling, two where it holds one of version 4", () => {
    fc.assert(
      fc.property(fc.ipV6(), (written) => {
        const bytes = parseAddress(written);
        if (bytes === null) return;
        const isDotted = written.includes(".");
        const byUrl = new URL(`http://[${written}]/`).hostname.slice(1, -1);
        expect(isDotted || written === byUrl).toBe(true);
        expect(parseAddress(byUrl)).toEqual(bytes);
      }),
      { numRuns: 500 },
    );
  });

  test("of version 4 is of the same kind within one of version 6", () => {
    fc.assert(
      fc.property(bytes4, ([a, b, c, d]) => {
        const kind = addressKind([a, b, c, d].join("."));
        const [high, low] = [(a << 8) | b, (c << 8) | d];
        expect(addressKind(`::ffff:${a}.${b}.${c}.${d}`)).toBe(kind);
        expect(addressKind(spelledByUrl([0, 0, 0, 0, 0, 0xffff, high, low]))).toBe(kind);
        expect(addressKind(spelledByUrl([0x64, 0xff9b, 0, 0, 0, 0, high, low]))).toBe(kind);
        expect(addressKind(spelledByUrl([0x2002, high, low, 1, 2, 3, 4, 5]))).toBe(kind);
      }),
      { numRuns: 500 },
    );
  });
});

test("Text is no address, and never does harm", () => {
  const piece = fc.constantFrom(":", "::", ".", "0", "1", "ffff", "%", "255", "a", "-");
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((all) => all.join("")),
      ),
      (text) => {
        const bytes = parseAddress(text);
        expect([0, 4, 16]).toContain(bytes?.length ?? 0);
      },
    ),
    { numRuns: 2000 },
  );
});
