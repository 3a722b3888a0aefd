//! Packs the relative relocations of the program (DT_RELR): 1.5 MB become 20 KB.
//!
//! The start-up code of a static program applies them itself since glibc 2.36; an older one would crash, so it gets
//! none.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let native = std::env::var("HOST") == std::env::var("TARGET");
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut numbers =
        version.trim().trim_start_matches("glibc ").split('.').filter_map(|part| part.parse::<u32>().ok());
    if native && (numbers.next(), numbers.next()) >= (Some(2), Some(36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
