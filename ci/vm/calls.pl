# A process and its child that do the same calls in each run: files, a TCP connection on loopback, a pipe.
use strict;
use warnings;
use Fcntl;
use IO::Socket::INET;

my $dir = shift or die "usage: calls.pl DIR\n";
my ($buffer, $name) = ("", "$dir/calls");
mkdir $name or die "$name: $!";
sysopen(my $file, "$name/file", O_RDWR | O_CREAT) or die "$name/file: $!";
syswrite($file, "x" x 4096) for 1 .. 50;
sysseek($file, 0, 0);
sysread($file, $buffer, 4096) for 1 .. 51; # the last one finds the end
close $file;
-e "$name/none" and die;
rename "$name/file", "$name/other";

my $listener = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die "listen: $!";
pipe my $from, my $to;
my $child = fork;
if (!$child) {
	my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $listener->sockport) or die "connect: $!";
	for (1 .. 30) {
		send $socket, "a" x 200, 0;
		recv $socket, $buffer, 100, 0;
	}
	syswrite($to, "done");
	exit 0;
}
my $peer = $listener->accept;
for (1 .. 30) {
	recv $peer, $buffer, 200, 0;
	send $peer, "b" x 100, 0;
}
sysread($from, $buffer, 4);
waitpid $child, 0;
unlink "$name/other";
rmdir $name;
