//! Root of the guest binary. `build.rs` compiles it as a static program. The library has the same
//! files as its module `guest`.

use std::alloc::{GlobalAlloc, Layout, System};

#[path = "mod.rs"]
mod guest;

/// The system's allocator. If it has no memory, the guest ends with a message and an exit status
/// that say so. The standard library would abort instead, and process 1 cannot end itself by
/// SIGABRT.
struct Allocator;

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { guest::out_of_memory() } else { memory }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let memory = unsafe { System.realloc(memory, layout, size) };
        if memory.is_null() { guest::out_of_memory() } else { memory }
    }
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() {
    // SAFETY: this is the `main` of the guest binary, and no file has been opened yet.
    std::process::exit(unsafe { guest::run() });
}
