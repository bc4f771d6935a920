/** Programs that know of no proxy, in languages whose own libraries speak for them. */

export const fetching = `const response = await fetch(process.argv[2], { signal: AbortSignal.timeout(20_000) });
console.log(await response.text());
`;

export const getting = `import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=20)
except urllib.error.HTTPError as error:
    answer = error
print(answer.read().decode())
`;

/** HTTP by hand, in TLS where it is asked for. */
export const handshaking = `import socket, ssl, sys
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
stream = socket.create_connection((url.hostname, 443 if url.scheme == "https" else 80), timeout=20)
if url.scheme == "https":
    stream = ssl.create_default_context().wrap_socket(stream, server_hostname=url.hostname)
stream.sendall(f"GET {url.path} HTTP/1.1\\r\\nHost: {url.hostname}\\r\\nConnection: close\\r\\n\\r\\n".encode())
answer = b""
while part := stream.recv(65536):
    answer += part
print(answer.partition(b"\\r\\n\\r\\n")[2].decode())
`;

/** One exchange over TCP, or why there was none. */
export const speaking = `import socket, sys
host, port, way = sys.argv[1:]
heard = []
try:
    stream = socket.create_connection((host, int(port)), timeout=20)
    if way == "hear":
        heard.append(stream.recv(99).decode().strip())
        stream.sendall(b"friend")
    else:
        stream.sendall(bytes([0, 0, 0, 8, 4, 210, 22, 47]))
    heard.append(stream.recv(99).decode().strip())
except OSError as error:
    heard.append(error.strerror or str(error))
print(host, port, *heard)
`;

/** A tunnel through the door of the proxy, and all that comes through it. */
export const tunnelling = `import socket, sys
stream = socket.create_connection(("127.0.0.1", 3128), timeout=20)
stream.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
stream.sendall(b"friend")
heard = b""
while part := stream.recv(65536):
    heard += part
head, _, rest = heard.decode().replace("\\r", "").partition("\\n\\n")
print(head.partition("\\n")[0])
print(rest)
`;

/** A WebSocket by hand: says one word, and prints what comes back; or what was answered instead. */
export const socketing = `import { randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";
const url = new URL(process.argv[2].replace(/^ws/, "http"));
const headers = {
  Connection: "Upgrade", Upgrade: "websocket",
  "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
};
const asking = (url.protocol === "https:" ? https : http).request(url, { headers, timeout: 20_000 });
asking.on("response", (response) => response.pipe(process.stdout));
asking.on("upgrade", (response, socket) => {
  const mask = randomBytes(4);
  const word = Buffer.from("hello").map((byte, at) => byte ^ mask[at % 4]);
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | word.length]), mask, word]));
  socket.once("data", (frame) => {
    console.log(response.statusCode, frame.subarray(2).toString());
    socket.end(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
  });
});
asking.end();
`;
