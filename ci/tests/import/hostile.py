"""A server that speaks HTTP as /api/v1/query_range of Prometheus, and misbehaves as its argument says; or an HTTPS proxy that
asks for a token. Prints its port."""
import http.server, json, ssl, sys, time, urllib.parse, urllib.request

what = sys.argv[1]
asked = []


def series(device, points):
    return {"metric": {"__name__": "up", "device": device}, "values": points}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *args):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else body.encode())

    def do_GET(self):
        try:
            getattr(self, what)()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def silent(self):
        time.sleep(20)

    def slow(self):  # never ends, always sends more
        self.answer(200, '{"status":"success","data":{"resultType":"matrix","result":[')
        while True:
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.05)

    def endless(self):
        self.answer(200, '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"')
        while True:
            self.wfile.write(b"x" * 65536)

    def html(self):
        self.answer(200, "<html>\x1b[1mlog in</html>")

    def cut(self):
        self.answer(200, '{"status":"success","data":{"resultType":"matrix","result":[', **{"Content-Length": "5000"})

    def redirect(self):
        self.answer(302, "", Location="http://127.0.0.1:1/steal")

    def broken(self):
        self.answer(500, "oh\x1b[1m no")

    def refused(self):
        self.answer(400, json.dumps({"status": "error", "errorType": "bad_data", "error": "1:3: parse \x1b[1m error"}))

    def query(self):
        return {k: float(v[0]) for k, v in urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query).items() if k != "query"}

    def limited(self):  # at most 100 samples an answer, and never more than 11,000 steps
        q = self.query()
        n = int((q["end"] - q["start"]) / q["step"] + 1e-6) + 1
        if n > 100:
            self.answer(422, json.dumps({"status": "error", "error": "query processing would load too many samples into memory"}))
            return
        points = [[q["start"] + i * q["step"], str(i)] for i in range(n)]
        self.answer(200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
            series("a", points), series("b", points)]}}))

    def huge(self):  # 400 series with all steps: some 100 MB
        q = self.query()
        n = int((q["end"] - q["start"]) / q["step"] + 1e-6) + 1
        if n > 11000:
            self.answer(400, json.dumps({"status": "error", "error": "exceeded maximum resolution of 11,000 points per timeseries."}))
            return
        values = ",".join('[%.3f,"%d.5"]' % (q["start"] + i * q["step"], i) for i in range(n)).encode()
        self.answer(200, '{"status":"success","data":{"resultType":"matrix","result":[')
        for i in range(400):
            self.wfile.write(b'%s{"metric":{"device":"d%d"},"values":[%s]}' % (b"," if i else b"", i, values))
        self.wfile.write(b"]}}")

    def disks(self, status, **more):  # 4 hosts with 4 disks; h0/sdb is three times as slow; h3's disks are missing
        q = self.query()
        times = [q["start"] + i * q["step"] for i in range(int((q["end"] - q["start"]) / q["step"] + 1e-6) + 1)]
        self.answer(status, json.dumps({"status": "success", **more, "data": {"resultType": "matrix", "result": [
            {"metric": {"host": "h%d" % h, "disk": "sd" + d}, "values": [
                [t, "%g" % ((8 + (t / q["step"] * 7 + h * 5 + ord(d) * 3) % 11 / 10) * (3 if (h, d) == (0, "b") else 1))] for t in times]}
            for h in range(3) for d in "abcd"]}}))

    def whole(self):
        self.disks(200, isPartial=False, warnings=[])

    def is_partial(self):
        self.disks(200, isPartial=True)

    def status_206(self):
        self.disks(206)

    def warns(self):
        self.disks(200, warnings=["store s1: not ready"], infos=["metric might not be a counter"])

    def none_but_warns(self):
        self.answer(200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}, "warnings": ["no store"]}))

    def recovers(self):  # partial at first
        asked.append(0)
        self.disks(200, isPartial=len(asked) <= 3)

    def proxy(self):
        if self.headers.get("Authorization") != "Bearer sesame":
            self.answer(401, "no")
            return
        with urllib.request.urlopen(sys.argv[4] + self.path) as r:
            self.answer(r.status, r.read())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if what == "proxy":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
