# Reads `cpp -dM` of a unistd.h; writes {number, "name"}, sorted by number, as one macro.
# __NR_lseek may be defined as __NR3264_lseek, which has the number.
BEGIN { print "#define CALL_NAMES_" arch " \\" }
$1 == "#define" && $2 ~ /^__NR(3264)?_/ && NF == 3 { value[$2] = $3 }
END {
	for (macro in value) {
		if (macro !~ /^__NR_/)
			continue
		name = substr(macro, 6)
		nr = value[macro]
		if (nr in value)
			nr = value[nr]
		if (nr ~ /^[0-9]+$/ && name !~ /^(syscalls|arch_specific_syscall)$/)
			by[nr + 0] = name
	}
	for (nr = 0; nr < 2048; nr++)
		if (nr in by)
			printf "\t{%d, \"%s\"}, \\\n", nr, by[nr]
	print ""
}
