//! Root of the guest binary. `build.rs` compiles it static, and the same files are the module `guest` of the library.

#[path = "mod.rs"]
mod guest;

fn main() {
    std::process::exit(guest::run());
}
