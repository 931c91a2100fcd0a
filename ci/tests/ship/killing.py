"""Runs a program that talks HTTP to 127.0.0.1:PORT through a proxy, and kills it (SIGKILL) at its K-th request.

    killing.py PORT K WHEN COMMAND ...      each '@' in COMMAND becomes the proxy's port

WHEN: before  the server has not seen the request
      half    it has seen half of the body, then the connection breaks
      whole   it has seen all of it and may still be at work when the program is gone
      after   it has answered
Prints how many requests there were; ends with 137 if the program was killed, else as the program did."""
import http.client, socket, subprocess, sys, threading

port, k, when, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
listener = socket.create_server(("127.0.0.1", 0))
program = subprocess.Popen([word.replace("@", str(listener.getsockname()[1])) for word in command])
requests = 0


def read_request(f):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = f.readline()
        if not line:
            return None, None
        head += line
    length = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head, f.read(length[0] if length else 0)


def send(head, body, part):
    upstream = socket.create_connection(("127.0.0.1", port))
    upstream.sendall(head + body[: int(len(body) * part)])
    return upstream


def serve(client):
    global requests
    f = client.makefile("rb")
    while True:
        head, body = read_request(f)
        if head is None:
            return
        requests += 1
        if requests == k and when != "after":
            upstream = send(head, body, 0.5 if when == "half" else 1) if when != "before" else None
            program.kill()
            if upstream:
                upstream.close()
            return
        upstream = send(head, body, 1)
        answer = http.client.HTTPResponse(upstream)
        answer.begin()
        data = answer.read()
        upstream.close()
        if requests == k:
            program.kill()
            return
        client.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (answer.status, len(data)) + data)


def accept():
    while True:
        client, _ = listener.accept()
        try:
            serve(client)
        except OSError:  # the program is gone, or the server
            pass
        client.close()


threading.Thread(target=accept, daemon=True).start()
code = program.wait(timeout=300)
print(requests)
sys.exit(137 if code == -9 else code)
