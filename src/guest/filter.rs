//! A system-call filter on top of the engine's, for the guest and all processes that it starts.
//!
//! The default profile of engines (Docker 20.10 to 22) lets containers open sockets of the family `AF_VSOCK`, whose ports are shared by all
//! containers of a machine whatever their networks are, so that two attempts at a task could talk (attack D-41). It also permits `io_uring`,
//! which bypasses filters, `memfd_secret`, whose memory no limit of files or of the disk counts, and `fallocate`, which takes gigabytes of the
//! disk in less time than passes between two looks at a limit that is polled. File systems without it exist, so programs write instead.

#![expect(unsafe_code, reason = "system calls that the standard library does not offer")]

/// An instruction of classic BPF: `struct sock_filter` of linux/filter.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    k: u32,
}

/// `struct sock_fprog` of linux/filter.h.
#[repr(C)]
struct Program {
    len: u16,
    filter: *const Instruction,
}

/// Loads a word of `struct seccomp_data` (linux/seccomp.h) at this offset.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
/// The lower half of the first argument, on little-endian machines.
const FIRST_ARGUMENT_AT: u32 = 16;

const ALLOW: u32 = 0x7fff_0000;
const FAIL_WITH: u32 = 0x0005_0000;
/// What a kernel without the call answers, which programs that try `io_uring` expect.
const ENOSYS: u32 = 38;
const EAFNOSUPPORT: u32 = 97;
const EOPNOTSUPP: u32 = 95;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "x86_64")]
const SOCKET: u32 = 41;
#[cfg(target_arch = "x86_64")]
const FALLOCATE: u32 = 285;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "aarch64")]
const SOCKET: u32 = 198;
#[cfg(target_arch = "aarch64")]
const FALLOCATE: u32 = 47;
const IO_URING_SETUP: u32 = 425;
const IO_URING_ENTER: u32 = 426;
const IO_URING_REGISTER: u32 = 427;
const MEMFD_SECRET: u32 = 447;
/// Calls of x86-64's x32 variant begin here. Without this, each call above would have a second number.
const X32: u32 = 0x4000_0000;
const AF_VSOCK: u32 = 40;

const PR_SET_SECCOMP: i32 = 22;
const PR_GET_NO_NEW_PRIVS: i32 = 39;
const SECCOMP_MODE_FILTER: u64 = 2;

unsafe extern "C" {
    fn prctl(option: i32, ...) -> i32;
}

/// The filter. Calls of other architectures (32-bit programs) do not exist.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const FILTER: [Instruction; 17] = [
    Instruction { code: LOAD, if_true: 0, if_false: 0, k: ARCHITECTURE_AT },
    Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 0, k: ARCHITECTURE },
    Instruction { code: RETURN, if_true: 0, if_false: 0, k: FAIL_WITH | ENOSYS },
    Instruction { code: LOAD, if_true: 0, if_false: 0, k: NUMBER_AT },
    Instruction { code: JUMP_IF_AT_LEAST, if_true: 9, if_false: 0, k: X32 },
    Instruction { code: JUMP_IF_EQUAL, if_true: 8, if_false: 0, k: IO_URING_SETUP },
    Instruction { code: JUMP_IF_EQUAL, if_true: 7, if_false: 0, k: IO_URING_ENTER },
    Instruction { code: JUMP_IF_EQUAL, if_true: 6, if_false: 0, k: IO_URING_REGISTER },
    Instruction { code: JUMP_IF_EQUAL, if_true: 5, if_false: 0, k: MEMFD_SECRET },
    Instruction { code: JUMP_IF_EQUAL, if_true: 6, if_false: 0, k: FALLOCATE },
    Instruction { code: JUMP_IF_EQUAL, if_true: 0, if_false: 2, k: SOCKET },
    Instruction { code: LOAD, if_true: 0, if_false: 0, k: FIRST_ARGUMENT_AT },
    Instruction { code: JUMP_IF_EQUAL, if_true: 2, if_false: 0, k: AF_VSOCK },
    Instruction { code: RETURN, if_true: 0, if_false: 0, k: ALLOW },
    Instruction { code: RETURN, if_true: 0, if_false: 0, k: FAIL_WITH | ENOSYS },
    Instruction { code: RETURN, if_true: 0, if_false: 0, k: FAIL_WITH | EAFNOSUPPORT },
    Instruction { code: RETURN, if_true: 0, if_false: 0, k: FAIL_WITH | EOPNOTSUPP },
];

/// Applies the filter to this process and all that it will start, if the sandbox forbids new privileges; the kernel takes filters of
/// others from privileged processes only. A kernel without filters is tolerated.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn apply() {
    let program = Program { len: FILTER.len() as u16, filter: FILTER.as_ptr() };
    // SAFETY: plain calls; the kernel copies the program, which lives until the call returns.
    unsafe {
        if prctl(PR_GET_NO_NEW_PRIVS, 0u64, 0u64, 0u64, 0u64) == 1 {
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &raw const program, 0u64, 0u64);
        }
    }
}

/// There is no filter for this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn apply() {}
