//! A system-call filter on top of the engine's, for the guest and all processes that it starts.
//!
//! It refuses calls that reach out of the container, or that no limit counts. [`REFUSALS`] has a
//! row and a reason for each. The errors are those of kernels and file systems without these calls,
//! so programs know them and use other calls.

#![expect(unsafe_code, reason = "system calls that the standard library does not offer")]

use Answer::{Eafnosupport, Einval, Enosys, Eopnotsupp, Eperm};

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

/// A call that is refused.
struct Refusal {
    /// The number of the call.
    call: u32,
    /// The call is refused only if all of these arguments match.
    arguments: &'static [Argument],
    answer: Answer,
}

/// A condition on the lower half of an argument. The kernel ignores the upper half of the arguments
/// that occur here.
#[derive(Clone, Copy)]
struct Argument {
    index: u32,
    is: Is,
}

#[derive(Clone, Copy)]
enum Is {
    Equal(u32),
    /// The argument has this bit.
    With(u32),
}

/// An `errno` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Answer {
    Eperm = 1,
    /// As from a file system without the flag.
    Einval = 22,
    /// As from a kernel without the call.
    Enosys = 38,
    /// As from a file system without the operation.
    Eopnotsupp = 95,
    Eafnosupport = 97,
}

const fn every(call: u32, answer: Answer) -> Refusal {
    Refusal { call, arguments: &[], answer }
}

const fn with(call: u32, arguments: &'static [Argument], answer: Answer) -> Refusal {
    Refusal { call, arguments, answer }
}

const fn equal(index: u32, value: u32) -> Argument {
    Argument { index, is: Is::Equal(value) }
}

const fn has(index: u32, bit: u32) -> Argument {
    Argument { index, is: Is::With(bit) }
}

const REFUSALS: [Refusal; 22] = [
    // `AF_VSOCK`: all containers of a machine share its ports. Two rollouts could talk through
    // them.
    with(SOCKET, &[equal(0, 40)], Eafnosupport),
    // `O_DIRECT`: one call can read gigabytes from the disk, and no signal ends it. E.g. 230
    // processes with 2 GiB each kept a container alive, and the disk busy, for ten minutes.
    with(OPEN, &[has(1, O_DIRECT)], Einval),
    with(OPENAT, &[has(2, O_DIRECT)], Einval),
    with(FCNTL, &[equal(1, F_SETFL), has(2, O_DIRECT)], Einval),
    // `openat2`: its flags lie in memory, where a filter cannot look.
    every(437, Enosys),
    // `io_uring` can do what filters refuse.
    every(425, Enosys),
    every(426, Enosys),
    every(427, Enosys),
    // `memfd_secret`: neither a limit of files nor of the disk counts its memory.
    every(447, Enosys),
    // `io_setup`: all containers and the host share the requests of `/proc/sys/fs/aio-max-nr`, and
    // each can see how many are taken. Databases have an alternative, e.g. InnoDB uses threads.
    every(IO_SETUP, Enosys),
    // `F_SETPIPE_SZ`: buffers of pipes are counted for all containers together. The kernel gives
    // this error when that count is too high.
    with(FCNTL, &[equal(1, 1031)], Eperm),
    // Preallocation takes gigabytes of the disk between two looks of the watchdog. Programs write
    // zeros instead.
    every(FALLOCATE, Eopnotsupp),
    // XFS_IOC_ALLOCSP, XFS_IOC_ALLOCSP64, FS_IOC_RESVSP, FS_IOC_RESVSP64, FS_IOC_ZERO_RANGE.
    with(IOCTL, &[equal(1, 0x4030_580a)], Eopnotsupp),
    with(IOCTL, &[equal(1, 0x4030_5824)], Eopnotsupp),
    with(IOCTL, &[equal(1, 0x4030_5828)], Eopnotsupp),
    with(IOCTL, &[equal(1, 0x4030_582a)], Eopnotsupp),
    with(IOCTL, &[equal(1, 0x4030_5839)], Eopnotsupp),
    // FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS, `file_setattr`: on XFS a file can leave its project, and
    // so the container's quota. And a hint of a large extent preallocates.
    with(IOCTL, &[equal(1, 0x401c_5820)], Eopnotsupp),
    with(IOCTL, &[equal(1, 0x4008_6602)], Eopnotsupp),
    every(469, Eopnotsupp),
    // The same requests with the numbers of 32-bit programs, in case a kernel accepts these too.
    with(IOCTL, &[equal(1, 0x402c_5828)], Eopnotsupp),
    with(IOCTL, &[equal(1, 0x402c_582a)], Eopnotsupp),
];

/// Loads a word of `struct seccomp_data` (linux/seccomp.h).
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

const ALLOW: u32 = 0x7fff_0000;
const FAIL_WITH: u32 = 0x0005_0000;

#[cfg(target_arch = "x86_64")]
mod calls {
    pub(super) const ARCHITECTURE: u32 = 0xc000_003e;
    pub(super) const O_DIRECT: u32 = 0x4000;
    pub(super) const OPEN: u32 = 2;
    pub(super) const IOCTL: u32 = 16;
    pub(super) const SOCKET: u32 = 41;
    pub(super) const FCNTL: u32 = 72;
    pub(super) const IO_SETUP: u32 = 206;
    pub(super) const OPENAT: u32 = 257;
    pub(super) const FALLOCATE: u32 = 285;
}
#[cfg(target_arch = "aarch64")]
mod calls {
    pub(super) const ARCHITECTURE: u32 = 0xc000_00b7;
    pub(super) const O_DIRECT: u32 = 0x1_0000;
    /// This architecture has no such call.
    pub(super) const OPEN: u32 = u32::MAX;
    pub(super) const IO_SETUP: u32 = 0;
    pub(super) const FCNTL: u32 = 25;
    pub(super) const IOCTL: u32 = 29;
    pub(super) const FALLOCATE: u32 = 47;
    pub(super) const OPENAT: u32 = 56;
    pub(super) const SOCKET: u32 = 198;
}
use calls::{ARCHITECTURE, FALLOCATE, FCNTL, IO_SETUP, IOCTL, O_DIRECT, OPEN, OPENAT, SOCKET};
const F_SETFL: u32 = 4;
/// Numbers of x86-64's x32 calls begin here. Each call above has a second number there.
const X32: u32 = 0x4000_0000;

const PR_SET_SECCOMP: i32 = 22;
const PR_GET_NO_NEW_PRIVS: i32 = 39;
const SECCOMP_MODE_FILTER: u64 = 2;

unsafe extern "C" {
    fn prctl(option: i32, ...) -> i32;
}

/// The filter as a program. Calls of other architectures, e.g. of 32-bit programs, are refused.
fn compile(refusals: &[Refusal]) -> Vec<Instruction> {
    let load = |at| Instruction { code: LOAD, if_true: 0, if_false: 0, k: at };
    let fail = |answer| Instruction { code: RETURN, if_true: 0, if_false: 0, k: FAIL_WITH | answer as u32 };
    // Continues if the loaded word passes, and else skips instructions.
    let only_if = |is, skipped| match is {
        Is::Equal(k) => Instruction { code: JUMP_IF_EQUAL, if_true: 0, if_false: skipped, k },
        Is::With(k) => Instruction { code: JUMP_IF_BIT, if_true: 0, if_false: skipped, k },
    };
    let mut filter = vec![
        load(ARCHITECTURE_AT),
        Instruction { code: JUMP_IF_EQUAL, if_true: 1, if_false: 0, k: ARCHITECTURE },
        fail(Enosys),
        load(NUMBER_AT),
        Instruction { code: JUMP_IF_AT_LEAST, if_true: 0, if_false: 1, k: X32 },
        fail(Enosys),
    ];
    for Refusal { call, arguments, answer } in refusals {
        // An argument takes two instructions. The answer is the last one.
        let mut skipped = 2 * arguments.len() as u8 + 1;
        filter.extend([load(NUMBER_AT), only_if(Is::Equal(*call), skipped)]);
        for Argument { index, is } in *arguments {
            skipped -= 2;
            filter.extend([load(ARGUMENTS_AT + ARGUMENT_BYTES * index), only_if(*is, skipped)]);
        }
        filter.push(fail(*answer));
    }
    filter.push(Instruction { code: RETURN, if_true: 0, if_false: 0, k: ALLOW });
    filter
}

/// Applies the filter to this process and to all that it starts. The kernel takes a filter from an
/// unprivileged process only if new privileges are forbidden. Otherwise, and on a kernel without
/// filters, there is none.
pub(super) fn apply() {
    let filter = compile(&REFUSALS);
    let program = Program { len: filter.len() as u16, filter: filter.as_ptr() };
    // SAFETY: plain calls. The kernel copies the program, which lives until the call returns.
    unsafe {
        if prctl(PR_GET_NO_NEW_PRIVS, 0u64, 0u64, 0u64, 0u64) == 1 {
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &raw const program, 0u64, 0u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter on a call, as the kernel does.
    fn run(filter: &[Instruction], architecture: u32, call: u32, arguments: [u32; 3]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let Instruction { code, if_true, if_false, k } = filter[at];
            let mut jump = |holds: bool| at += usize::from(if holds { if_true } else { if_false });
            match code {
                RETURN => return k,
                LOAD => {
                    loaded = match k {
                        NUMBER_AT => call,
                        ARCHITECTURE_AT => architecture,
                        16 => arguments[0],
                        24 => arguments[1],
                        32 => arguments[2],
                        other => panic!("nothing is at {other}"),
                    }
                }
                JUMP_IF_EQUAL => jump(loaded == k),
                JUMP_IF_AT_LEAST => jump(loaded >= k),
                JUMP_IF_BIT => jump(loaded & k != 0),
                other => panic!("no instruction {other}"),
            }
            at += 1;
        }
    }

    #[test]
    fn calls_are_refused_by_number_and_argument() {
        let filter = compile(&REFUSALS);
        let check = |call: u32, [first, second]: [u32; 2], expect: Option<Answer>| {
            let arguments = [first, second, 0];
            let expect = expect.map_or(ALLOW, |answer| FAIL_WITH | answer as u32);
            assert_eq!(run(&filter, ARCHITECTURE, call, arguments), expect, "{call} {arguments:x?}");
            assert_eq!(run(&filter, ARCHITECTURE, call | X32, arguments), FAIL_WITH | 38, "{call} of x32");
            assert_eq!(run(&filter, 0x4000_0003, call, arguments), FAIL_WITH | 38, "{call} of 32 bits");
        };
        check(SOCKET, [40, 0], Some(Eafnosupport));
        check(SOCKET, [1, 40], None);
        check(SOCKET, [0, 0], None);
        check(425, [0, 0], Some(Enosys));
        check(427, [9, 9], Some(Enosys));
        check(428, [0, 0], None);
        check(447, [0, 0], Some(Enosys));
        check(IO_SETUP, [64, 0], Some(Enosys));
        check(FALLOCATE, [3, 0], Some(Eopnotsupp));
        check(FCNTL, [3, 1031], Some(Eperm));
        // F_GETPIPE_SZ, F_DUPFD.
        check(FCNTL, [3, 1032], None);
        check(FCNTL, [1031, 0], None);
        for refused in [0x4030_5828, 0x4030_582a, 0x4030_5839, 0x402c_582a, 0x401c_5820, 0x4008_6602] {
            check(IOCTL, [3, refused], Some(Eopnotsupp));
            check(IOCTL, [refused, 3], None);
        }
        // TCGETS, FS_IOC_GETFLAGS, FS_IOC_UNRESVSP64, FICLONE.
        for allowed in [0x5401, 0x8008_6601, 0x4030_582b, 0x4004_9409] {
            check(IOCTL, [3, allowed], None);
        }
        check(469, [0, 0], Some(Eopnotsupp));
        check(1, [0, 0], None);
        check(437, [0, 0], Some(Enosys));
        let flags = |call: u32, arguments: [u32; 3], expect: u32| {
            assert_eq!(run(&filter, ARCHITECTURE, call, arguments), expect, "{call} {arguments:x?}");
        };
        let refused = FAIL_WITH | Einval as u32;
        // O_RDWR with O_DIRECT; then an ordinary O_CREAT.
        flags(OPENAT, [3, 7, O_DIRECT | 2], refused);
        flags(OPENAT, [3, O_DIRECT, 0o102], ALLOW);
        flags(OPEN, [7, O_DIRECT, 0], refused);
        flags(OPEN, [O_DIRECT, 0o102, O_DIRECT], ALLOW);
        flags(FCNTL, [3, F_SETFL, O_DIRECT | 0x800], refused);
        flags(FCNTL, [3, F_SETFL, 0x800], ALLOW);
        flags(FCNTL, [3, 1030, O_DIRECT], ALLOW);
    }
}
