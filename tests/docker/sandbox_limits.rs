//! Limits of containers on a real engine. They protect the host and other containers.

use std::time::Duration;

use termsmith::sandbox::{Evidence, ImageError, Sandbox, SandboxError};

use crate::support::engine::{context, docker, image_spec, launch, limit, output, run, shell};

#[test]
fn containers_cannot_exceed_their_disk_limit() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let fill = "for i in 1 2 3 4 5; do head -c 30000000 /dev/zero >/var/tmp/$i || break; done; \
                    [ $i != 5 ] || sleep 1000; sync; du -sm /var/tmp";
        match sandbox.shell(fill, &limit(Duration::from_secs(60))).await {
            Err(SandboxError::Lost(loss)) => {
                assert_eq!(loss.evidence, Evidence::OwnLimit);
                assert_eq!(loss.detail, "disk limit of 64 MiB exceeded");
            }
            // This engine's storage has quotas.
            Ok(filled) => {
                let said = String::from_utf8_lossy(&filled.output).into_owned();
                let used = said.lines().last().and_then(|line| line.split('\t').next()?.parse::<u32>().ok());
                assert!(used.is_some_and(|used| used <= 64), "{said}");
                assert!(said.contains("No space left") || said.contains("quota exceeded"), "{said}");
            }
            Err(other) => panic!("{other:?}"),
        }
    });
}

/// These files lie outside the container's layer, because the engine mounts them.
#[test]
fn the_disk_watchdog_counts_the_files_that_the_engine_mounts() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let fill =
            "for i in hosts hostname resolv.conf; do head -c 30000000 /dev/zero >/etc/$i; done; sleep 1000";
        let lost = sandbox.shell(fill, &limit(Duration::from_secs(60))).await;
        let Err(SandboxError::Lost(loss)) = lost else { panic!("{lost:?}") };
        assert_eq!(loss.evidence, Evidence::OwnLimit);
    });
}

/// Two containers could pass bits through a lock on a file that both have mounted.
#[test]
fn locks_on_the_guest_are_not_seen_by_other_sandboxes() {
    run(async {
        let Some(engine) = docker().await else { return };
        let (one, other) = (launch(&engine).await, launch(&engine).await);
        let hold = "(flock 9; sleep 20) 9</.termsmith/guest & sleep 1; echo held";
        let held = shell(&one, hold).await;
        assert_eq!(held.output, b"held\n");
        // As a control, another process of the same sandbox sees the lock.
        let look = "(flock -n 9 && echo free || echo locked) 9</.termsmith/guest";
        assert_eq!(output(&one, look).await, "locked\n");
        assert_eq!(output(&other, look).await, "free\n");
        let counters = "cat /proc/cmdline /proc/locks /proc/key-users /proc/sys/kernel/pty/nr \
                        /proc/sys/fs/{aio-nr,dentry-state,file-nr,inode-nr,inode-state} | wc -c; \
                        ls /proc/fs /proc/pressure /sys/fs/ext4 2>/dev/null | grep -v :";
        assert_eq!(output(&other, counters).await, "0\n\n\n");
    });
}

/// System calls that could let containers of one machine talk, or evade the watchdog. Each line is
/// an errno, or 0.
#[test]
fn calls_that_reach_past_a_container_are_refused() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let check = async |call: &str, expect: &str| {
            let script = format!("perl -MSocket -e 'my $r = {call}; print defined $r && $r ? 0 : $! + 0'");
            assert_eq!(output(&sandbox, &script).await, expect, "{call}");
        };
        const EAFNOSUPPORT: &str = "97";
        const ENOSYS: &str = "38";
        const EOPNOTSUPP: &str = "95";
        const EPERM: &str = "1";
        const EINVAL: &str = "22";
        check("socket(my $s, 40, SOCK_STREAM, 0)", EAFNOSUPPORT).await;
        check("socket(my $s, 40, SOCK_DGRAM, 0)", EAFNOSUPPORT).await;
        check("socket(my $s, AF_UNIX, SOCK_STREAM, 0)", "0").await;
        check("socket(my $s, AF_INET, SOCK_STREAM, 0)", "0").await;
        check("1 + syscall(425, 4, 0)", ENOSYS).await;
        check("1 + syscall(426, 0, 0, 0, 0, 0, 0)", ENOSYS).await;
        check("1 + syscall(427, 0, 0, 0, 0)", ENOSYS).await;
        check("1 + syscall(447, 0)", ENOSYS).await;
        check("1 + syscall(206, 64, my $c = pack(q(Q), 0))", ENOSYS).await;
        // Requests that allocate gigabytes of the disk at once, and pipes of a megabyte.
        for request in ["0x40305828", "0x4030582a", "0x40305839", "0x401c5820", "0x40086602"] {
            let call = format!("open(F, q(>), q(file)) && ioctl(F, {request}, my $b = pack(q(x48)))");
            check(&call, EOPNOTSUPP).await;
        }
        // `openat`, `open` and `F_SETFL` with `O_DIRECT`, and `openat2`.
        check("1 + syscall(257, -100, my $p = q(/etc/passwd), 0x4000)", EINVAL).await;
        check("1 + syscall(2, my $p = q(/etc/passwd), 0x4000)", EINVAL).await;
        check("open(F, q(<), q(/etc/passwd)) && fcntl(F, 4, 0x4000)", EINVAL).await;
        check("open(F, q(<), q(/etc/passwd)) && fcntl(F, 4, 0x800)", "0").await;
        check("1 + syscall(437, -100, my $p = q(/etc/passwd), my $h = pack(q(x24)), 24)", ENOSYS).await;
        check("pipe(R, W) && fcntl(W, 1031, 1 << 20)", EPERM).await;
        check("pipe(R, W) && fcntl(W, 1032, 0)", "0").await;
    });
}

/// Runs a command, after which the watchdog must kill the container for this reason.
async fn is_killed(sandbox: &Sandbox, command: &str, (evidence, reason): (Evidence, &str)) {
    let lost = sandbox.shell(command, &limit(Duration::from_secs(60))).await;
    let Err(SandboxError::Lost(loss)) = lost else { panic!("{command}: {lost:?}") };
    assert_eq!(loss.evidence, evidence, "{command}: {loss}");
    assert!(loss.detail.starts_with(reason), "{command}: {loss}");
}

#[test]
fn the_watchdog_counts_what_all_containers_share() {
    run(async {
        let Some(engine) = docker().await else { return };
        // Half of a limit disturbs nobody.
        let sandbox = launch(&engine).await;
        let some = r"perl -e 'for (1..32) { syscall(294, 0) } for (1..200) { pipe(my $r, my $w); push @a, $r, $w } sleep 8; print 1'";
        assert_eq!(output(&sandbox, some).await, "1");
        let all = r"perl -e 'for (1..100) { syscall(294, 0) } sleep 100'";
        is_killed(&sandbox, all, (Evidence::OwnLimit, "limit of 64 inotify instances exceeded")).await;
        let pipes =
            r"ulimit -n 4096; perl -e 'for (1..600) { pipe(my $r, my $w); push @a, $r, $w } sleep 100'";
        is_killed(&launch(&engine).await, pipes, (Evidence::OwnLimit, "limit of 512 pipes exceeded")).await;
        // Each of 100 instances watches 3,000 descriptors.
        let watches = r#"ulimit -n 4096; perl -MPOSIX -e 'open F, "<", "/proc/version"; @d = map { POSIX::dup(fileno F) } 1..3000;
            for (1..100) { my $e = syscall(291, 0); syscall(233, $e, 1, $_, my $v = pack("LQ", 1, 0)) for @d } sleep 100'"#;
        let expect = (Evidence::OwnLimit, "limit of 262144 epoll watches exceeded");
        is_killed(&launch(&engine).await, watches, expect).await;
    });
}

/// A deleted file. Only a message in a socket has a descriptor of it.
#[test]
fn files_in_flight_count_to_the_disk_limit() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        shell(&sandbox, "sleep 4").await;
        // Perl's own modules cannot send descriptors. The script builds `struct iovec`, `struct
        // cmsghdr` and `struct msghdr`.
        let send = r#"use Socket; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0);
for (1..10) {
  open(F, "+>", "/var/tmp/f"); unlink "/var/tmp/f"; syswrite F, "x" x 1000000 for 1..40;
  my ($x, $c) = ("x", pack("QiiiI", 20, 1, 1, fileno F, 0));
  my $v = pack("PQ", $x, 1); my $m = pack("QLLPQPQiI", 0, 0, 0, $v, 1, $c, 24, 0, 0);
  syscall(46, fileno A, $m, 0) == 1 or die $!; close F;
}
print "sent\n"; sleep 100;"#;
        let command = format!("cat >send.pl <<'EOF'\n{send}\nEOF\nperl send.pl");
        // A neighbour may have taken the space. So the loss alone does not blame the solver.
        let expect = (Evidence::FilesInFlight, "disk limit of 64 MiB exceeded");
        is_killed(&sandbox, &command, expect).await;
    });
}

#[test]
fn terminals_are_not_shared() {
    run(async {
        let Some(engine) = docker().await else { return };
        let (one, other) = (launch(&engine).await, launch(&engine).await);
        let take = r#"perl -e '$| = 1; while (open(my $t, "+<", "/dev/ptmx")) { push @t, $t } print scalar(@t), " $!\n"; sleep 20' & sleep 2"#;
        assert_eq!(output(&one, take).await, "64 No space left on device\n");
        let open = r#"perl -e 'open(my $t, "+<", "/dev/ptmx") and print "open\n"'; ls /dev/pts"#;
        assert_eq!(output(&other, open).await, "open\nptmx\n");
    });
}

/// Loopback connections whose data nobody reads.
#[test]
fn socket_buffers_are_limited() {
    run(async {
        let Some(engine) = docker().await else { return };
        let sandbox = launch(&engine).await;
        let fill = r#"use Socket; socket(L, AF_INET, SOCK_STREAM, 0); setsockopt(L, SOL_SOCKET, SO_RCVBUF, 8 << 20);
bind(L, pack_sockaddr_in(0, INADDR_LOOPBACK)); listen(L, 100); my $at = getsockname(L); my $sum = 0;
for (1..60) {
  socket(my $c, AF_INET, SOCK_STREAM, 0); setsockopt($c, SOL_SOCKET, SO_SNDBUF, 8 << 20);
  connect($c, $at) or last; accept(my $a, L); fcntl($c, 4, 2048); push @keep, $c, $a;
  while (my $n = syswrite($c, "x" x 100000)) { $sum += $n }
}
print $sum >> 20;"#;
        let command = format!("cat >fill.pl <<'EOF'\n{fill}\nEOF\nperl fill.pl");
        let mebibytes: u64 = output(&sandbox, &command).await.parse().unwrap();
        // The container has 128 MiB of memory. Buffers may take an eighth of it.
        assert!((1..=24).contains(&mebibytes), "{mebibytes} MiB");
    });
}

#[test]
fn the_steps_of_a_build_have_a_disk_limit() {
    run(async {
        let Some(engine) = docker().await else { return };
        // A build has no filter of system calls, so the allocation takes no time. It needs 11 GB
        // for a few seconds.
        let dockerfile = "FROM debian:bookworm-slim\nRUN fallocate -l 11G /big && sleep 1000\n";
        let context = context(&[("Dockerfile", dockerfile)]);
        let failed = engine.ensure_image(&image_spec("blake3:testlarge", &context)).await;
        let Err(ImageError::Build { log }) = failed else { panic!("{failed:?}") };
        assert!(log.contains("The steps of the build wrote more than 10240 MiB."), "{log}");
    });
}
