-- The hosts of your cluster. Fill in, then check them all:  culprit doctor --inventory THIS-FILE
-- harness/nodes/README.md lists all keys. Missing values are detected: ports, users, keys and jump hosts from
-- your SSH configuration, bricks and mounts on the hosts.

---@type culprit.Inventory
return {
  file_system = { type = "glusterfs" },       -- volume = "gv0", if hosts serve more than one
  nodes = {
    -- Names as in 'ssh s1'. Servers are compared with each other, so at least three are needed.
    { name = "s1", role = "server" },
    { name = "s2", role = "server" },
    { name = "s3", role = "server" },
    { name = "c1", role = "client" },
    -- { name = "s4", role = "server", ssh = "s4.example.org", user = "admin", become = "sudo" },
    -- { name = "o1", role = "outsider" },    -- not part of the file system: for network hogs

    -- For disk hogs, an unused partition on the brick's disk; it is overwritten:
    --   spare = "/dev/sdb2"
  },
  -- allow_restart = true,                    -- faults may kill and restart servers
}
