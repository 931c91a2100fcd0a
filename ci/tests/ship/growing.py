"""growing.py FROM TO: writes TO as FROM, in parts, as a tracer does: it holds the writer's lock meanwhile (diag/record/growing.h).
Each number on standard input is the size that TO gets; the end of input lets the lock go."""
import fcntl
import struct
import sys

F_OFD_SETLK = 37
data = open(sys.argv[1], "rb").read()
with open(sys.argv[2], "xb") as out:
    fcntl.fcntl(out, F_OFD_SETLK, struct.pack("hhqqixxxx", fcntl.F_WRLCK, 0, 0, 0, 0))
    at = 0
    for line in sys.stdin:
        out.write(data[at:int(line)])
        out.flush()
        at = int(line)
