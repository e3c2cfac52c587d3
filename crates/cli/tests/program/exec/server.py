"""What programs reach through tunnels: the web, an echo, resets, and datagrams."""
import functools, http.server, socket, struct, sys, threading

class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

class Web(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

def tcp(port, talk):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    def accept():
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=talk, args=(stream,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()

def echo(stream):
    """Says back what it has heard, once the other side has ended."""
    heard = bytearray()
    while piece := stream.recv(65536):
        heard += piece
    stream.sendall(heard)
    stream.close()

def reset(stream):
    stream.recv(1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()

def source(stream):
    stream.sendall(stream.getpeername()[0].encode())
    stream.close()

def udp(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.bind((address, 9))
    while True:
        bytes, sender = receiver.recvfrom(65535)
        receiver.sendto(bytes, sender)

tcp(7, echo)
tcp(8, reset)
tcp(10, source)
for address in sys.argv[2:]:
    threading.Thread(target=udp, args=(address,), daemon=True).start()
web = Web(("::", 80), functools.partial(Quiet, directory=sys.argv[1]))
print("ready", flush=True)
web.serve_forever()
