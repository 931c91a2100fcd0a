std = "lua54"
max_line_length = 130
exclude_files = { "**/*.meta.lua" }          -- declarations for editors, not code
unused_args = false                          -- callbacks take what they are given
files["diag/detectors"].read_globals = { "vec" }
