-- Hosts for culprit. Fill in, then try every one of them:  culprit doctor --inventory THIS-FILE
-- All keys: harness/inventory/README.md. Nothing here is asked for twice: ports, users, keys and jump hosts come
-- from your SSH configuration, bricks and mounts from the hosts.

---@type culprit.Inventory
return {
  file_system = { type = "glusterfs" },       -- volume = "gv0", if hosts serve more than one
  nodes = {
    -- What 'ssh s1' reaches. Peers are compared with each other: three servers at the least.
    { name = "s1", role = "server" },
    { name = "s2", role = "server" },
    { name = "s3", role = "server" },
    { name = "c1", role = "client" },
    -- { name = "s4", role = "server", ssh = "s4.example.org", user = "admin", become = "sudo" },
    -- { name = "o1", role = "outsider" },    -- takes part in nothing: for network hogs

    -- For disk hogs, an unused partition on the brick's disk; it is overwritten:
    --   spare = "/dev/sdb2"
  },
  -- allow_restart = true,                    -- faults may kill and restart servers
}
