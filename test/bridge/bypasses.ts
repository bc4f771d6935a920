/** What a hostile agent writes to reach its client's machine. Each is one or more lines that must carry nothing there. */
const method = "terminal/create";
const params = '{"sessionId":"s","command":"touch","args":["/tmp/reached"]}';
const call = `"method":"${method}","params":${params}`;
const version = '"jsonrpc":"2.0"';
const request = `{${version},"id":1,${call}}`;
const update = `{${version},"method":"session/update","params":{}}`;

const nested = (depth: number) =>
  `{${version},"id":1,"params":${"[".repeat(depth)}${"]".repeat(depth)},"method":"${method}"}`;

export const bypasses: Readonly<Record<string, Buffer | string>> = {
  "a plain request": `${request}\n`,
  "a plain notification": `{${version},${call}}\n`,
  "the id null": `{${version},"id":null,${call}}\n`,
  "members in another order": `{"params":${params},"method":"${method}","id":1,${version}}\n`,
  "blanks everywhere": `\t { ${version} , "id" : 1 , "method" : "${method}" , "params" : ${params} } \n`,
  "Windows' line ends": `${request}\r\n`,
  "no version": `{"id":1,${call}}\n`,
  "another version": `{"jsonrpc":"1.0","id":1,${call}}\n`,
  "a version that is a number": `{"jsonrpc":2.0,"id":1,${call}}\n`,
  "a batch": `[${request}]\n`,
  "a batch within a batch": `[[${request}]]\n`,
  "a batch with a harmless first": `[${update},${request}]\n`,
  "two objects in a line": `${update}${request}\n`,
  "two objects with a blank": `${update} ${request}\n`,
  "a carriage return between": `${update}\r${request}\r${update}\n`,
  "a vertical tab between": `${update}\x0b${request}\n`,
  "a form feed between": `${update}\f${request}\n`,
  "a file separator between": `${update}\x1c${request}\n`,
  "a next line between": `${update}\x85${request}\n`,
  "a line separator between": `${update}\u{2028}${request}\n`,
  "NUL between": `${update}\0${request}\n`,
  "a byte order mark": `\u{feff}${request}\n`,
  "UTF-16": Buffer.concat([Buffer.from(`${request}\n`, "utf16le"), Buffer.from("\n")]),
  "the method twice, harmless last": `{${version},"id":1,${call},"method":"session/update"}\n`,
  "the method twice, harmless first": `{${version},"id":1,"method":"session/update",${call}}\n`,
  "the method twice, once escaped": `{${version},"id":1,"method":"session/update","\\u006dethod":"${method}","params":${params}}\n`,
  "an escaped name": `{${version},"id":1,"\\u006dethod":"${method}","params":${params}}\n`,
  "an escaped slash": `{${version},"id":1,"method":"terminal\\/create","params":${params}}\n`,
  "an escaped letter": `{${version},"id":1,"method":"\\u0074erminal/create","params":${params}}\n`,
  "a name in capitals": `{${version},"id":1,"METHOD":"${method}","params":${params}}\n`,
  "a name in capitals beside a result": `{${version},"id":1,"result":{},"Method":"${method}","params":${params}}\n`,
  "a method in capitals": `{${version},"id":1,"method":"Terminal/Create","params":${params}}\n`,
  "a method with blanks": `{${version},"id":1,"method":" terminal/create ","params":${params}}\n`,
  "a method of wide letters": `{${version},"id":1,"method":"ｔerminal/create","params":${params}}\n`,
  "a method with NUL behind": `{${version},"id":1,"method":"terminal/create\\u0000","params":${params}}\n`,
  "a method in a list": `{${version},"id":1,"method":["${method}"],"params":${params}}\n`,
  "a request and its response": `{${version},"id":1,"result":{},${call}}\n`,
  "a fraction as id": `{${version},"id":1.0,${call}}\n`,
  "an endless id": `{${version},"id":"${"9".repeat(5000)}",${call}}\n`,
  "an object as id": `{${version},"id":{},${call}}\n`,
  "single quotes": `{'jsonrpc':'2.0','id':1,'method':'${method}','params':{}}\n`,
  "bare names": `{jsonrpc:"2.0",id:1,method:"${method}",params:{}}\n`,
  comments: `{/**/${version},"id":1,${call}}//\n`,
  "a trailing comma": `{${version},"id":1,${call},}\n`,
  "NaN beside": `{${version},"id":1,${call},"x":NaN}\n`,
  "a deep nest": `${nested(127)}\n`,
  "a nest beyond the bound": `${nested(5000)}\n`,
  "broken UTF-8 beside": Buffer.concat([
    Buffer.from(`{${version},"x":"`),
    Buffer.of(0xc3, 0x28),
    Buffer.from(`","id":1,${call}}\n`),
  ]),
  "a newline in an overlong spelling": Buffer.concat([
    Buffer.from(update),
    Buffer.of(0xc0, 0x8a),
    Buffer.from(`${request}\n`),
  ]),
  "much before it": `{${version},"id":1,"params":{"x":"${"x".repeat(300_000)}"},"method":"${method}"}\n`,
  "a line beyond the limit before it": `{"x":"${"x".repeat(1_200_000)}\n${request}\n`,
  "a line beyond the limit that ends in it": `{"x":"${"x".repeat(1_200_000)}"}${request}\n`,
  "a carriage return after much": `${"x".repeat(140_000)}\r${request}\n`,
  ...Object.fromEntries(
    ["terminalCreate", "createTerminal", "x/../terminal/create", "../terminal/create", "client/terminal/create"].map(
      (name) => [`a terminal by the name ${name}`, `{${version},"id":2,"method":"${name}","params":${params}}\n`],
    ),
  ),
  ...Object.fromEntries(
    [
      "x.fs/read",
      "session/fs/read",
      "window/showDocument",
      "workspace/executeCommand",
      "initialize",
      "authenticate",
    ].map((name) => [
      `a request that no protocol has, ${name}`,
      `{${version},"id":2,"method":"${name}","params":${params}}\n`,
    ]),
  ),
  "a file to be read": `{${version},"id":2,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}\n`,
  "a file to be written": `{${version},"id":2,"method":"fs/write_text_file","params":{"path":"/tmp/x","content":""}}\n`,
  "a server of the client's": `{${version},"id":2,"method":"mcp/message","params":{}}\n`,
  "the next agent": `{${version},"id":2,"method":"proxy/successor","params":{"method":"session/prompt"}}\n`,
  "a page": `{${version},"id":2,"method":"elicitation/create","params":{"mode":"url","url":"https://example.com/"}}\n`,
};

/** Nothing of this is harmless either; but the rest of the message must arrive. */
export const login = `{${version},"id":0,"result":{"protocolVersion":1,"authMethods":[{"id":"x","name":"x","type":"terminal","args":["reached"]},{"id":"y","name":"y","_meta":{"terminal-auth":{"command":"reached"}}},{"id":"agent","name":"z"}]}}\n`;

/** Written after all else: it must arrive, or something was held back that should not be. */
export const farewell = `{${version},"method":"session/update","params":{"update":{"text":"farewell"}}}\n`;
