/** A program in each language, that gets an address and prints what it is answered. */

export const go = `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	body, _ := io.ReadAll(answer.Body)
	fmt.Printf("%d %s\\n%s\\n", answer.StatusCode, answer.Proto, body)
}
`;

export const java = `import java.net.URI;
import java.net.http.*;

class Main {
    public static void main(String[] words) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(words[0])).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.version());
    }
}
`;

export const deno = `const answer = await fetch(Deno.args[0]);
console.log(answer.status, (await answer.json()).server ?? "refused");
`;

export const rust = `use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> std::io::Result<()> {
    let host = std::env::args().nth(1).unwrap();
    let path = std::env::args().nth(2).unwrap();
    let mut stream = TcpStream::connect((host.as_str(), 80))?;
    write!(stream, "GET {} HTTP/1.1\\r\\nHost: {}\\r\\nConnection: close\\r\\n\\r\\n", path, host)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    println!("{}", answer.replace("\\r\\n", "\\n"));
    Ok(())
}
`;

export const requests = `import sys
import requests
for url in sys.argv[1:]:
    answer = requests.get(url, timeout=20)
    print(answer.status_code, answer.json().get("server", answer.json().get("reason")))
with requests.Session() as session:
    for number in range(3):
        print(session.get(sys.argv[1], params={"number": number}, timeout=20).json()["url"])
`;

/** gRPC as it stands on the wire: messages behind five bytes, the status in what follows the body. */
export const grpc = `import http2 from "node:http2";
const [origin, path] = process.argv.slice(2);
const session = http2.connect(origin);
session.on("error", (error) => { console.log("error:", error.code ?? error.message); process.exit(1); });
const stream = session.request({
  ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers",
});
const say = (word) => {
  const message = Buffer.from(word);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  stream.write(Buffer.concat([head, message]));
};
let held = Buffer.alloc(0);
let text = "";
stream.on("response", (headers) => {
  console.log("status", headers[":status"], headers["content-type"]);
  const isGrpc = headers["content-type"] === "application/grpc";
  stream.on("data", (bytes) => {
    if (!isGrpc) return void (text += bytes);
    held = Buffer.concat([held, bytes]);
    while (held.length >= 5 && held.length >= 5 + held.readUInt32BE(1)) {
      const length = held.readUInt32BE(1);
      const word = held.subarray(5, 5 + length).toString();
      held = held.subarray(5 + length);
      console.log("message", word);
      // The second is said when the first was answered.
      if (word === "echo one") say("two"); else stream.end();
    }
  });
});
stream.on("end", () => stream.end());
stream.on("trailers", (trailers) => console.log("grpc-status", trailers["grpc-status"]));
stream.on("close", () => { if (text !== "") console.log(text); session.close(); });
stream.on("error", (error) => console.log("error:", error.code ?? error.message));
say("one");
`;
