import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { parseBranch, parseRepository, repositoryAt, repositoryText } from "../../src/policy/repository.ts";
import { failure } from "../failure.ts";

describe("a repository", () => {
  test.each([
    ["octocat/hello-world", "octocat", "hello-world"],
    ["a/b", "a", "b"],
    ["Org-1/.github", "Org-1", ".github"],
    ["mona_company/x.y_z", "mona_company", "x.y_z"],
    ["octocat/hello.git", "octocat", "hello"],
    ["o/n.github.io", "o", "n.github.io"],
    [`${"o".repeat(39)}/${"n".repeat(100)}`, "o".repeat(39), "n".repeat(100)],
  ])("%s is an owner and a name", (written, owner, name) => {
    expect(parseRepository(written)).toEqual({ owner, name });
    expect(repositoryText({ owner, name })).toBe(`${owner}/${name}`);
  });

  test.each([
    "",
    "o",
    "/",
    "o/",
    "/n",
    "o//n",
    "o/n/",
    "o/n/more",
    "../n",
    "o/..",
    "o/.",
    "./n",
    "o/.git",
    "o/..git",
    "o/...git",
    "o/n.git.git",
    "o/n.GIT",
    "-o/n",
    "o/-n",
    "--upload-pack=x/n",
    "o /n",
    "o/n ",
    " o/n",
    "o\t/n",
    "o/n\n",
    "o/n\0",
    "o/n?x",
    "o/n#x",
    "o/n@x",
    "u@o/n",
    "o:p/n",
    "o/n:x",
    "o\\p/n",
    "o/n\\x",
    "o/n%2f..",
    "o/n;id",
    "o/$(id)",
    "o/ñ",
    "https://github.com/o/n",
    "git@github.com:o/n",
    "ext::sh -c id/n",
    `${"o".repeat(40)}/n`,
    `o/${"n".repeat(101)}`,
  ])("%j is none", (written) => {
    expect(failure(PolicyError, () => parseRepository(written))).toMatchObject({
      code: "REPOSITORY_INVALID",
      hint: expect.stringContaining("OWNER/NAME"),
    });
  });

  test("makes an address that leads to the host, whatever was written", () => {
    const letters = fc.string({ unit: fc.constantFrom(..."ab.-_/@:?#\\% \n~".split("")), maxLength: 12 });
    fc.assert(
      fc.property(letters, (written) => {
        let text: string;
        try {
          text = repositoryText(parseRepository(written));
        } catch {
          return;
        }
        const url = new URL(`https://github.com/${text}.git`);
        expect([url.host, url.username, url.pathname]).toEqual(["github.com", "", `/${text}.git`]);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the address of a remote", () => {
  test.each([
    "https://github.com/octocat/hello.git",
    "https://github.com/octocat/hello",
    "https://github.com/octocat/hello/",
    "https://GitHub.com:443/octocat/hello.git",
    "https://x-access-token:sesame@github.com/octocat/hello.git",
    "http://github.com/octocat/hello.git",
    "ssh://git@github.com/octocat/hello.git",
    "ssh://git@GitHub.com:443/octocat/hello.git",
    "git@github.com:octocat/hello.git",
    "git@github.com:/octocat/hello.git",
    "github.com:octocat/hello",
  ])("%s names a repository", (address) => {
    expect(repositoryAt(address, "github.com")).toEqual({ owner: "octocat", name: "hello" });
  });

  test("may name a port, which is another's with ssh", () => {
    const found = { owner: "o", name: "n" };
    expect(repositoryAt("http://localhost:8080/o/n.git", "localhost:8080")).toEqual(found);
    expect(repositoryAt("http://localhost:8081/o/n.git", "localhost:8080")).toBeNull();
    expect(repositoryAt("http://localhost/o/n.git", "localhost:8080")).toBeNull();
    expect(repositoryAt("ssh://git@localhost:22/o/n.git", "localhost:8080")).toEqual(found);
  });

  test.each([
    "",
    "hello",
    "../hello",
    "/srv/git/octocat/hello.git",
    "github.com/octocat/hello",
    "file:///github.com/octocat/hello",
    "git://github.com/octocat/hello.git",
    "ext::sh -c x github.com/octocat/hello",
    "https://github.com.evil.example/octocat/hello.git",
    "https://evil.example/github.com/octocat/hello.git",
    "https://github.com@evil.example/octocat/hello.git",
    "https://evil.example:octocat@evil.example/github.com/hello",
    "https://evil.example#@github.com/octocat/hello",
    "https://evil.example\\@github.com/octocat/hello",
    "git@evil.example:github.com/hello",
    "git@evil.example:octocat/hello.git",
    "https://github.com/octocat",
    "https://github.com/octocat/hello/more",
    "https://github.com/octocat/hello.git?x",
    "https://github.com/octocat/hello.git#x",
    "https://github.com/octocat/%68ello",
    "https://github.com/-octocat/hello",
    "https://github.com/octocat/hello.git.git",
    "https://github.com:99999/octocat/hello",
  ])("%s names none on that host", (address) => {
    expect(repositoryAt(address, "github.com")).toBeNull();
  });
});

describe("a branch", () => {
  test.each(["main", "topic/login", "v1.2", "a@b", "ünïcode", "x".repeat(244), "refs/heads/main", "a-"])(
    "%s is one",
    (written) => {
      expect(parseBranch(written)).toBe(written);
    },
  );

  test.each([
    "",
    "-b",
    "--upload-pack=x",
    "a b",
    "a\tb",
    "a\n",
    "a\0",
    "a\u007f",
    "a~1",
    "a^",
    "a:b",
    "a?",
    "a*",
    "a[",
    "a\\b",
    "a..b",
    "@",
    "HEAD",
    "@{-1}",
    "a@{1}",
    "/a",
    "a/",
    "a//b",
    ".a",
    "a/.b",
    "a.lock",
    "a.lock/b",
    "a.",
    "\ud800",
    "x".repeat(245),
    "ü".repeat(123),
  ])("%j is none", (written) => {
    expect(failure(PolicyError, () => parseBranch(written)).code).toBe("REPOSITORY_INVALID");
  });

  test("is never one that git refuses", () => {
    const letters = fc.string({
      unit: fc.constantFrom(..."ab.-/@{~lock^: HEAD\\".split("")),
      minLength: 1,
      maxLength: 8,
    });
    const written = fc.sample(letters, { numRuns: 150, seed: 7 });
    const taken = written.filter((name) => {
      try {
        return parseBranch(name) === name;
      } catch {
        return false;
      }
    });
    expect(taken.length).toBeGreaterThan(10);
    for (const name of taken) {
      expect([name, spawnSync("git", ["check-ref-format", `refs/heads/${name}`]).status]).toEqual([name, 0]);
    }
  });
});
