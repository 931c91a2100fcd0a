/* For an agent that is built with sanitizers: on a node nobody gives it ASAN_OPTIONS. Leaks are not
 * looked for, since that takes ptrace, which its tracers need. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
