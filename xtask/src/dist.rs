//! `cargo xtask dist`: builds the release binary and verifies that it is static.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Builds and checks `target/dist/landspeed`, and prints its size.
pub fn run() -> Result<()> {
    let built = build_release()?;
    let directory = crate::law::root().join("target").join("dist");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let shipped = directory.join("landspeed");
    std::fs::copy(&built, &shipped).with_context(|| format!("cannot write {}", shipped.display()))?;
    let binary = std::fs::read(&shipped).with_context(|| format!("cannot read {}", shipped.display()))?;
    if let Some(interpreter) = interpreter(&binary)? {
        bail!("{} is not static: it asks for {interpreter}", shipped.display());
    }
    println!("{}: static, {:.1} MiB", shipped.display(), binary.len() as f64 / f64::from(1 << 20));
    Ok(())
}

/// Builds the release binary and returns its path.
pub fn build_release() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(crate::law::root())
        .args(["build", "--release", "--package", "landspeed", "--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "the release build failed");
    let messages = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| {
            let name = message.pointer("/target/name")?.as_str()?;
            let executable = message.get("executable")?.as_str()?;
            (name == "landspeed").then(|| PathBuf::from(executable))
        })
        .context("cargo built no executable named landspeed")
}

/// Returns the dynamic loader (`PT_INTERP`) of a 64-bit little-endian ELF file; `None` for a static binary.
pub fn interpreter(elf: &[u8]) -> Result<Option<String>> {
    const PT_INTERP: u64 = 3;
    ensure!(elf.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let field = |at: usize, width: usize| {
        let bytes = elf.get(at..at + width).context("a truncated ELF file")?;
        Ok::<_, anyhow::Error>(bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte)))
    };
    let (table, entry, count) = (field(0x20, 8)? as usize, field(0x36, 2)? as usize, field(0x38, 2)? as usize);
    for header in (0..count).map(|index| table + index * entry) {
        if field(header, 4)? == PT_INTERP {
            let (offset, length) = (field(header + 8, 8)? as usize, field(header + 32, 8)? as usize);
            let name = elf.get(offset..offset + length).context("a truncated ELF file")?;
            return Ok(Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_test_binary_has_no_interpreter() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(interpreter(&own).unwrap(), None);
    }

    #[test]
    fn dynamic_and_static_programs_are_distinguished() {
        let mut elf = vec![0u8; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[0x20], elf[0x36], elf[0x38], elf[64], elf[72], elf[96]) = (64, 56, 1, 3, 120, 8);
        elf.extend_from_slice(b"/lib/ld\0");
        assert_eq!(interpreter(&elf).unwrap().as_deref(), Some("/lib/ld"));
        elf.truncate(122);
        assert!(interpreter(&elf).is_err());
        assert!(interpreter(b"#!/bin/sh").is_err());
    }
}
