#!/usr/bin/env python3
"""Virtual machines with Debian 12's kernel and systemd, in the network namespace that this runs in.

    vms.py contain COMMAND ...     run COMMAND with network, processes and mounts of its own; when it ends, or is
                                   killed, every machine and interface that it made is gone
    vms.py up DIR NODE ...         boot machines on the image of ci/vm/image.sh and wait for SSH; those that run are kept
           [--kernel NAME]         one of $OUT/vm/image/kernels (default: bookworm)
           [--fresh]               with new disks
    vms.py down DIR [NODE ...]     cut their power
    vms.py qmp DIR NODE COMMAND [NAME=VALUE ...]    a command to a machine's monitor: device_del id=data

A node's first letter is its role: s1 (server), c1 (client), o1 (outsider). DIR gets inventory.lua for culprit, ssh_config for
ssh, and NODE.console. A server has a second disk on virtio-scsi: /dev/sda1, ext4, mounted on /srv/data, and /dev/sda2, spare.
'up', 'down' and 'qmp' must run inside 'contain'.
"""
import argparse, io, json, os, pathlib, signal, socket, struct, subprocess, sys, tarfile, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE = pathlib.Path(os.environ.get("OUT", ROOT / "out")).resolve() / "vm/image"
NET = "10.77.0."
ROLES = {"s": ("server", 10), "c": ("client", 20), "o": ("outsider", 30)}
BOOT_S = 900  # a minute on a quiet machine
# An emulated processor that is taken away for long fails the kernel's check of timers, which ends in a panic. For the same
# reason the machine is a q35: the other one's table of interrupts is a loop that the kernel breaks off after 30 s. Without
# mitigations and the fifth level of page tables emulation is faster.
KERNEL_OPTIONS = ("root=/dev/vda rw console=ttyS0 loglevel=5 net.ifnames=0 panic=10 systemd.show_status=0 no_timer_check "
                  "tsc=reliable nowatchdog rcupdate.rcu_cpu_stall_suppress=1 mitigations=off no5lvl random.trust_cpu=on")
MIB = 1 << 20
DISK, FIRST, SPARE = 1024 * MIB, 640 * MIB, 256 * MIB  # of a server: all, its file system, the spare partition


class Complaint(Exception):
    pass


def run(*argv, **more):
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **more)
    if done.returncode:
        raise Complaint(f"'{' '.join(str(a) for a in argv)}' failed: {done.stdout.strip()}")
    return done.stdout


class Node:
    def __init__(self, folder, name):
        if name[:1] not in ROLES or not name[1:].isdigit() or not 1 <= int(name[1:]) <= 9:
            raise Complaint(f"'{name}' is no node: s1 to s9 are servers, c1 to c9 clients, o1 to o9 outsiders")
        self.name, self.folder = name, folder
        self.role, first = ROLES[name[0]]
        self.number = first + int(name[1:])
        self.address = NET + str(self.number)

    def file(self, suffix):
        return self.folder / f"{self.name}.{suffix}"

    def pid(self):
        """Of its running qemu, else None."""
        try:
            pid = int(self.file("pid").read_text())
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if str(self.file("pid")).encode() in words else None

    def ready(self):
        # A machine that is being booted may accept a connection and drop it: only a command that ran counts.
        try:
            socket.create_connection((self.address, 22), 1).close()
            return not subprocess.run(["ssh", "-F", self.folder / "ssh_config", self.name, "true"], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode
        except (OSError, subprocess.TimeoutExpired):
            return False


def contain(command):
    """Processes end with the first one of their namespace, interfaces with the last process."""
    inside = ["unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child=KILL", "env", "CULPRIT_VMS=contained",
              *command]
    os.execvp(inside[0], inside)


def need_containment():
    if os.environ.get("CULPRIT_VMS") != "contained":
        raise Complaint("run this inside 'vms.py contain', which removes what it makes")


def keys(folder, node):
    """Host keys are made here, so that they are known before the first connection."""
    for name in (folder / "key", node.file("hostkey")):
        if not name.exists():
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "culprit-vm", "-f", name)


def host_key(node):
    return " ".join(node.file("hostkey.pub").read_text().split()[:2])


def seed(folder, node, nodes):
    """The disk from which a guest takes its name, address and keys at each boot (culprit-seed in the image)."""
    clock = ("local stratum 8\nallow\n" if node.name == "s1" else f"server {NET}11 iburst minpoll 0 maxpoll 2\n")
    script = f"""cd /run/seed
hostname {node.name}
echo {node.name} >/etc/hostname
{{ echo 127.0.0.1 localhost; {' '.join(f"echo {n.address} {n.name};" for n in nodes)} }} >/etc/hosts
mkdir -p /root/.ssh
install -m 600 authorized_keys /root/.ssh/authorized_keys
install -m 600 host_key /etc/ssh/ssh_host_ed25519_key
install -m 644 chrony.conf /etc/chrony/chrony.conf
ip address replace {node.address}/24 dev eth0
ip link set lo up
ip link set eth0 up
disk=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_data-part1
if [ -e $disk ]; then
	mkdir -p /srv/data
	e2fsck -p $disk
	mount $disk /srv/data
fi
exit 0
"""
    # s1's clock is the others'. A guest's clock begins with whole seconds, so it is set once.
    chrony = f"{clock}makestep 0.01 3\ndriftfile /var/lib/chrony/drift\n"
    files = {"seed.sh": script, "chrony.conf": chrony, "authorized_keys": (folder / "key.pub").read_text(),
             "host_key": node.file("hostkey").read_text()}
    with tarfile.open(node.file("seed"), "w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o600
            tar.addfile(member, io.BytesIO(text.encode()))


def disks(folder, node, fresh):
    root, data = node.file("root"), node.file("data")
    if fresh or not root.exists():
        root.unlink(missing_ok=True)
        run("qemu-img", "create", "-q", "-f", "qcow2", "-b", IMAGE / "root.img", "-F", "raw", root)
    if node.role == "server" and (fresh or not data.exists()):
        data.unlink(missing_ok=True)
        # A partition table: status, three bytes of old addresses, type, three more, first sector, sectors.
        parts = [(MIB, FIRST), (MIB + FIRST, SPARE)]
        table = b"".join(struct.pack("<B3xB3xII", 0, 0x83, first // 512, size // 512) for first, size in parts)
        with open(data, "wb") as f:
            f.truncate(DISK)
            f.seek(446)
            f.write(table.ljust(64, b"\0") + b"\x55\xaa")
        run("mke2fs", "-q", "-F", "-t", "ext4", "-E", f"offset={MIB}", data, f"{FIRST // 1024}k")
    elif node.role != "server":
        data = None
    return root, data


def network(node):
    links = {link["ifname"] for link in json.loads(run("ip", "-json", "link"))}
    if "vms" not in links:
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "vms", "type", "bridge")
        run("ip", "address", "add", NET + "1/24", "dev", "vms")
        run("ip", "link", "set", "vms", "up")
    tap = "tap-" + node.name
    if tap not in links:
        run("ip", "tuntap", "add", tap, "mode", "tap")
        run("ip", "link", "set", tap, "master", "vms", "up")
    return tap


def boot(folder, node, kernel, fresh):
    root, data = disks(folder, node, fresh)
    tap = network(node)
    node.file("qmp").unlink(missing_ok=True)
    argv = ["qemu-system-x86_64", "-name", node.name, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "512", "-smp", "1",
            "-nodefaults", "-no-user-config", "-display", "none", "-rtc", "base=utc,clock=host",
            "-kernel", kernel / "vmlinuz", "-initrd", kernel / "initrd",
            "-append", KERNEL_OPTIONS,
            "-serial", f"file:{node.file('console')}", "-qmp", f"unix:{node.file('qmp')},server=on,wait=off",
            # The first one is /dev/vda. What "-drive if=virtio" makes would come after all others.
            "-drive", f"if=none,id=rootfile,file={root},format=qcow2,cache=unsafe",
            "-device", "virtio-blk-pci,drive=rootfile,serial=root",
            "-drive", f"if=none,id=seed,file={node.file('seed')},format=raw,readonly=on",
            "-device", "virtio-blk-pci,drive=seed,serial=seed", "-object", "rng-random,id=rng,filename=/dev/urandom",
            "-device", "virtio-rng-pci,rng=rng",
            "-netdev", f"tap,id=net,ifname={tap},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:77:00:{node.number:02d}"]
    if data:
        argv += ["-device", "virtio-scsi-pci,id=scsi", "-drive", f"if=none,id=datafile,file={data},format=raw,cache=none",
                 "-device", "scsi-hd,id=data,drive=datafile,bus=scsi.0,serial=data"]
    run(*argv, "-daemonize", "-pidfile", node.file("pid"))


def write_client_files(folder, nodes):
    config, rows = "", []
    for node in nodes:
        config += (f"Host {node.name}\n  HostName {node.address}\n  User root\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n"
                   f"  UserKnownHostsFile {folder}/known_hosts\n  StrictHostKeyChecking yes\n  ConnectTimeout 60\n  LogLevel ERROR\n"
                   "  ServerAliveInterval 20\n")
        more = ', spare = "/dev/sda2"' if node.role == "server" else ', mount = "/mnt"' if node.role == "client" else ""
        rows.append(f'    {{ name = "{node.name}", role = "{node.role}", address = "{node.address}", identity = "key",\n'
                    f'      host_key = "{host_key(node)}"{more} }},\n')
    (folder / "ssh_config").write_text(config)
    (folder / "known_hosts").write_text("".join(f"{node.address} {host_key(node)}\n" for node in nodes))
    (folder / "inventory.lua").write_text('return {\n  file_system = { type = "glusterfs" }, ssh_config = "ssh_config", allow_restart = true,\n'
                                          "  nodes = {\n" + "".join(rows) + "  },\n}\n")


def up(folder, names, kernel_name, fresh):
    need_containment()
    kernel = IMAGE / "kernels" / kernel_name
    if not (kernel / "vmlinuz").exists():
        raise Complaint(f"there is no kernel '{kernel_name}' in {IMAGE}/kernels (ci/vm/image.sh builds them)")
    folder.mkdir(parents=True, exist_ok=True)
    nodes, begin = [Node(folder, name) for name in names], time.monotonic()
    for node in nodes:
        keys(folder, node)
    write_client_files(folder, nodes)
    booted = [node for node in nodes if not node.pid()]
    for node in booted:
        seed(folder, node, nodes)
        boot(folder, node, kernel, fresh)
    waiting = list(nodes)
    while waiting:
        for node in list(waiting):
            if not node.pid():
                raise Complaint(f"{node.name}: qemu has ended; its console is {node.file('console')}")
            if node.ready():
                waiting.remove(node)
        if waiting and time.monotonic() - begin > BOOT_S:
            raise Complaint(f"{waiting[0].name} does not answer on SSH after {BOOT_S} s; its console is {waiting[0].file('console')}")
        time.sleep(0.5)
    print(f"{' '.join(names)}: up after {time.monotonic() - begin:.0f} s")


def down(folder, names):
    need_containment()
    nodes = [Node(folder, name) for name in names or [f.name.split(".")[0] for f in sorted(folder.glob("*.pid"))]]
    for node in nodes:
        pid = node.pid()
        if pid:
            os.kill(pid, signal.SIGKILL)
        while node.pid():
            time.sleep(0.05)


def qmp(folder, name, command, pairs):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(Node(folder, name).file("qmp")))
        f = s.makefile("rw")
        f.readline()
        values = {name: {"true": True, "false": False}.get(value, value) for name, value in (pair.split("=", 1) for pair in pairs)}
        for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": values}):
            f.write(json.dumps(request) + "\n")
            f.flush()
            answer = {}
            while not {"return", "error"} & answer.keys():
                answer = json.loads(f.readline())
            if "error" in answer:
                raise Complaint(f"{name} refuses {command}: {answer['error'].get('desc')}")


def main():
    if sys.argv[1:2] == ["contain"] and len(sys.argv) > 2:
        return contain(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("up", "down", "qmp"):
        sub = commands.add_parser(name)
        sub.add_argument("dir", type=lambda text: pathlib.Path(text).resolve())
        if name == "qmp":
            sub.add_argument("node")
            sub.add_argument("request")
        sub.add_argument("names", nargs="+" if name == "up" else "*")
        if name == "up":
            sub.add_argument("--kernel", default="bookworm")
            sub.add_argument("--fresh", action="store_true")
    o = parser.parse_args()
    try:
        if o.command == "up":
            up(o.dir, o.names, o.kernel, o.fresh)
        elif o.command == "down":
            down(o.dir, o.names)
        else:
            qmp(o.dir, o.node, o.request, o.names)
    except (Complaint, OSError) as e:
        sys.exit(f"vms.py: {e}")


if __name__ == "__main__":
    main()
