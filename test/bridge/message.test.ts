import { describe, expect, test } from "vitest";
import { fold, readMessage } from "../../src/bridge/message.ts";
import { Scanner } from "../../src/bridge/scanner.ts";

function read(line: string, protocol: "acp" | "codex_app_server" = "acp") {
  const scanner = new Scanner();
  const bytes = Buffer.from(`${line}\n`);
  scanner.open(bytes);
  const members = scanner.scan(0);
  if (members === null) throw new Error(scanner.problem);
  return readMessage(scanner, members, protocol);
}

describe("a message is", () => {
  test("a request, with its id as it was spelled", () => {
    for (const id of ["0", "1", "-7", '"a"', '"\\u0061"', '"ü"', "null", "9007199254740991"]) {
      expect(read(`{"jsonrpc":"2.0","id":${id},"method":"a/b"}`)).toMatchObject({ kind: "request", id, method: "a/b" });
    }
  });

  test("a notification or a response", () => {
    expect(read('{"jsonrpc":"2.0","method":"$/x","params":{}}')).toMatchObject({ kind: "notification", method: "$/x" });
    expect(read('{"jsonrpc":"2.0","id":1,"result":null}')).toMatchObject({ kind: "response", error: null });
    expect(read('{"jsonrpc":"2.0","id":1,"error":{}}')).toMatchObject({ kind: "response", result: null });
  });

  test("the same with members that the protocol does not know", () => {
    expect(read('{"jsonrpc":"2.0","id":1,"method":"x","trace":{},"emittedAtMs":1}')).toMatchObject({ kind: "request" });
  });

  test("of Codex without a version, and with the right one", () => {
    expect(read('{"id":1,"method":"x"}', "codex_app_server")).toMatchObject({ kind: "request" });
    expect(read('{"jsonrpc":"2.0","id":1,"method":"x"}', "codex_app_server")).toMatchObject({ kind: "request" });
    expect(read('{"jsonrpc":"1.0","id":1,"method":"x"}', "codex_app_server")).toMatchObject({ kind: "refused" });
    expect(read('{"id":1,"method":"x"}', "acp")).toMatchObject({ kind: "refused" });
  });
});

describe("a message is refused", () => {
  const version = '"jsonrpc":"2.0"';

  test.each<[string, string | null, string]>([
    ['{"id":1,"method":"x"}', "1", "no version"],
    ['{"jsonrpc":2.0,"id":1,"method":"x"}', "1", "a number as version"],
    ['{"jsonrpc":"\\u0032.0","id":1,"method":"x"}', "1", "an escaped version"],
    ['{"jsonrpc":null,"id":1,"method":"x"}', "1", "null as version"],
    [`{${version},"id":1,"result":{},"method ":"fs/x"}`, null, "a name with a blank behind"],
    [`{${version},"id":1,"result":{}," Method":"fs/x"}`, null, "a name with a blank before"],
    [`{${version},"id":1.0,"method":"x"}`, "null", "an id with a fraction"],
    [`{${version},"id":1e0,"method":"x"}`, "null", "an id with an exponent"],
    [`{${version},"id":-0,"method":"x"}`, "null", "the id -0"],
    [`{${version},"id":9007199254740993,"method":"x"}`, "null", "an id that some readers round"],
    [`{${version},"id":true,"method":"x"}`, "null", "a boolean as id"],
    [`{${version},"id":[1],"method":"x"}`, "null", "a list as id"],
    [`{${version},"id":{},"method":"x"}`, "null", "an object as id"],
    [`{${version},"id":"${"x".repeat(2000)}","method":"x"}`, "null", "an endless id"],
    [`{${version},"id":1,"method":1}`, "1", "a number as method"],
    [`{${version},"id":1,"method":null}`, "1", "null as method"],
    [`{${version},"id":1,"method":["fs/read"]}`, "1", "a list as method"],
    [`{${version},"id":1,"method":""}`, "1", "an empty method"],
    [`{${version},"id":1,"method":"fs\\/read"}`, "1", "an escaped slash"],
    [`{${version},"id":1,"method":"\\u0066s/read"}`, "1", "an escaped letter"],
    [`{${version},"id":1,"method":" fs/read"}`, "1", "a blank in the method"],
    [`{${version},"id":1,"method":"ｆs/read"}`, "1", "a letter that is folded"],
    [`{${version},"id":1,"method":"${"x".repeat(300)}"}`, "1", "an endless method"],
    [`{${version},"id":1,"\\u006dethod":"fs/read","result":1}`, null, "an escaped name"],
    [`{${version},"id":1,"Method":"fs/read","result":1}`, null, "a name in another case"],
    [`{${version},"id":1,"method":"x","PARAMS":{}}`, "1", "parameters in another case"],
    [`{${version},"id":1,"paramſ":{},"method":"x"}`, "1", "a name that Unicode folds"],
    [`{${version},"id":1,"méthod":"x","result":1}`, null, "a name beyond ASCII"],
    [`{${version},"id":1,"method":"x","result":1}`, "1", "a request that is a response"],
    [`{${version},"id":1,"method":"x","error":{}}`, "1", "a request that is an error"],
    [`{${version},"id":1}`, null, "neither method nor result"],
    [`{${version},"result":1}`, null, "a result without an id"],
    [`{${version}}`, null, "nothing"],
  ])("%s", (line, answer) => {
    expect(read(line)).toMatchObject({ kind: "refused", answer });
  });
});

test("names are folded as the most lenient reader does it", () => {
  for (const name of ["authMethods", "AuthMethods", "auth_methods", "AUTH-METHODS", "authMethodſ", "ａuthMethods"]) {
    expect(fold(name)).toBe("authmethods");
  }
});
