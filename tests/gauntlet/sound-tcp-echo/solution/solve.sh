#!/bin/bash
set -e
cat > /app/echo.pl <<'EOF'
use Socket;
socket(my $server, PF_INET, SOCK_STREAM, 0);
setsockopt($server, SOL_SOCKET, SO_REUSEADDR, 1);
bind($server, sockaddr_in(8086, INADDR_LOOPBACK)) or die;
listen($server, 8);
while (accept(my $peer, $server)) {
    select($peer); $| = 1;
    while (<$peer>) { chomp; print $peer scalar(reverse($_)), "\n" }
    close($peer);
}
EOF
setsid perl /app/echo.pl < /dev/null > /dev/null 2>&1 &
for _ in $(seq 100); do (: < /dev/tcp/127.0.0.1/8086) 2> /dev/null && break; sleep 0.05; done
