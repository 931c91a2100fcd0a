return { file_system = { type = "glusterfs", layout = "distribute", volume = "gv0" }, ssh_config = "none", allow_restart = false, nodes = {
{ name = "s1", role = "server", address = "192.0.2.1", ssh = "s1.example.org", ssh_port = 22, user = "root", identity = "key",
  storage = "/srv/b", spare = "/dev/sdb2", service_port = 24007, allow_restart = true, become = "sudo", jump = "root@192.0.2.7:22" },
{ name = "s2", role = "server", host_key = "ssh-ed25519 AAAA" }, { name = "c1", role = "client", mount = "/mnt/fs" }, { name = "o1", role = "outsider" } } }
