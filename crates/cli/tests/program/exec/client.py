"""What a program sees that knows nothing of tunnels."""
import errno, os, socket, sys

V4, V6, NAME, DELAYED = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "delayed"

def connect(host, port):
    return socket.create_connection((host, port), timeout=60)

def failure(host, port):
    """Why there is no connection; a gateway can tell only by a reset, after the fact."""
    try:
        stream = connect(host, port)
        assert not DELAYED, "connected"
        assert stream.recv(1) == b"", "heard something"
        return "ended"
    except OSError as error:
        return errno.errorcode[error.errno]

# Bytes both ways, and a half-close in between.
sent = os.urandom(1_000_000)
for host in [V4, V6, NAME]:
    if host == "-":
        continue
    stream = connect(host, 7)
    stream.sendall(sent)
    stream.shutdown(socket.SHUT_WR)
    heard = bytearray()
    while piece := stream.recv(65536):
        heard += piece
    assert heard == sent, f"{host}: {len(heard)} bytes"

# A reset arrives as one.
stream = connect(V4, 8)
stream.sendall(b"x")
try:
    assert stream.recv(1) == b"?", "ended"
    sys.exit("no reset")
except ConnectionResetError:
    pass

# No connection, and why.
refused = "ECONNREFUSED" if DELAYED else "ECONNRESET"
for host in [V4, V6]:
    why = failure(host, 81)
    assert why == refused, why
why = failure("10.77.77.77", 81)
assert why == ("EHOSTUNREACH" if DELAYED else "ECONNRESET"), why
why = failure("fd77::77", 81)
assert why == ("EACCES" if DELAYED else "ECONNRESET"), why

# Datagrams, the empty one and long ones too, several ports at a time.
sockets = []
for host, family in [(V4, socket.AF_INET), (V6, socket.AF_INET6), (V4, socket.AF_INET)]:
    one = socket.socket(family, socket.SOCK_DGRAM)
    one.settimeout(60)
    one.connect((host, 9))
    sockets.append(one)
for length in [0, 1, 1400, 9000]:
    for one in sockets:
        one.send(sent[:length])
    for one in sockets:
        assert one.recv(65535) == sent[:length], length

# Who connects for us.
print("source", connect(V4, 10).recv(100).decode().removeprefix("::ffff:"))
if NAME != "-":
    assert {it[4][0] for it in socket.getaddrinfo(NAME, 80)} == {V4, V6}
    assert socket.gethostbyaddr(V4)[0] == NAME
    try:
        socket.getaddrinfo("nowhere.test", 80)
        sys.exit("a name that does not exist has an address")
    except socket.gaierror:
        pass
    # More connections at a time than are kept, to hosts that nobody permits; then one that is.
    flood = []
    for number in range(80):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex((f"10.77.{number}.1", 1 + number))
        flood.append(one)
    assert connect(NAME, 10).recv(100)
print("done")
