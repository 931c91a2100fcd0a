/*
 * stale_tail stale|correct FOLDER: a log writer (app) and a program that ships logs (shipper), as
 * in Esteves et al. 2023, figure 2.
 *
 * The app writes 26 bytes to FOLDER/app.log; the shipper reads them and remembers, by name and
 * inode number, how far it got. The app removes the file, makes it anew under the same inode
 * number, and writes 16 bytes. The stale shipper takes the new file for the old one, goes to byte
 * 26, and reads nothing: 16 bytes are lost. The correct one forgets what it remembers about a file
 * that was removed.
 *
 * Exit code 0 if the inode number was indeed the same; 1 if not, or if the file system failed.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[4096];
static int to_app[2], to_shipper[2];

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static void tell(const int pipe[2])
{
	if (write(pipe[1], "x", 1) != 1)
		die("write");
}

static void await(const int pipe[2])
{
	char c;

	if (read(pipe[0], &c, 1) != 1)
		die("read");
}

/* Makes the log with 'size' bytes; its inode number. */
static ino_t make_log(size_t size)
{
	static const char text[] = "2022-05-12 something went\n.";
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || write(fd, text, size) != (ssize_t)size)
		die(path);
	close(fd);
	return st.st_ino;
}

static int app(void)
{
	ino_t first, second;

	first = make_log(26);
	tell(to_shipper);
	await(to_app);
	if (unlink(path) < 0)
		die(path);
	second = make_log(16);
	tell(to_shipper);
	await(to_app);
	return first != second;
}

/* Reads from 'at' to the end; where that was. */
static off_t ship(off_t at)
{
	int fd = open(path, O_RDONLY);
	char data[512];
	ssize_t n;

	if (fd < 0 || lseek(fd, at, SEEK_SET) != at)
		die(path);
	while ((n = read(fd, data, sizeof(data))) > 0)
		at += n;
	close(fd);
	return at;
}

static int shipper(bool stale)
{
	off_t at;

	await(to_shipper);
	at = ship(0);
	tell(to_app);
	await(to_shipper);
	ship(stale ? at : 0);
	tell(to_app);
	return 0;
}

int main(int argc, char **argv)
{
	int status[2];
	pid_t pid[2];

	if (argc != 3 || pipe(to_app) < 0 || pipe(to_shipper) < 0)
		return 2;
	snprintf(path, sizeof(path), "%s/app.log", argv[2]);
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			die("fork");
		if (pid[i] == 0)
			_exit(i ? shipper(!strcmp(argv[1], "stale")) : app());
	}
	for (int i = 0; i < 2; i++)
		if (waitpid(pid[i], &status[i], 0) != pid[i])
			die("waitpid");
	return status[0] || status[1] ? 1 : 0;
}
