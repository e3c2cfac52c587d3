//! `cargo xtask dist`: the program as one static binary, with its manual pages and completion
//! scripts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The largest binary, in bytes: 15 MiB.
const MAX_SIZE: u64 = 15 << 20;

/// Builds for musl, checks what came out, and writes all files to `target/dist`.
pub(crate) fn make() -> Result<()> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let built = build(&target)?;
    let size = built.metadata()?.len();
    ensure!(
        size <= MAX_SIZE,
        "{} has {size} bytes; expected at most {MAX_SIZE} (15 MiB)",
        built.display()
    );
    let elf = std::fs::read(&built)?;
    ensure!(
        !has_interpreter(&elf).context("the binary is not a 64-bit little-endian ELF file")?,
        "{} names a dynamic loader; expected a static binary",
        built.display()
    );

    let out = Path::new("target/dist");
    if out.exists() {
        std::fs::remove_dir_all(out)?;
    }
    std::fs::create_dir_all(out.join("completions"))?;
    // Run from where it is copied to: nothing may have to lie beside it.
    let program = std::path::absolute(out.join("tack"))?;
    std::fs::copy(&built, &program)?;
    print(&program, &["man", "--out", "target/dist/man"])?;
    for (shell, file) in [
        ("bash", "tack.bash"),
        ("zsh", "_tack"),
        ("fish", "tack.fish"),
    ] {
        let script = print(&program, &["completions", shell])?;
        std::fs::write(out.join("completions").join(file), script)?;
    }
    let version = print(&program, &["--version"])?;
    crate::output::write(&format!(
        "{}: {}, static, {:.1} MiB; manual pages and completions beside it\n",
        program.display(),
        String::from_utf8_lossy(&version).trim_end(),
        size as f64 / f64::from(1 << 20)
    ))?;
    Ok(())
}

/// The path of the binary that cargo made.
fn build(target: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["rustc", "--package", "tack-cli", "--bin", "tack"])
        .args(["--profile", "dist", "--target", target])
        // Relative relocations in their short form, which musl knows since 1.2.4: 0.4 MiB less.
        .args(["--", "-C", "link-arg=-Wl,-z,pack-relative-relocs"])
        .status()?;
    ensure!(
        status.success(),
        "cannot build for {target}; this needs `rustup target add {target}`, and musl-gcc for the parts in C \
         (Debian's package musl-tools)"
    );
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(Path::new(&folder).join(target).join("dist").join("tack"))
}

/// What a run of `program` prints.
fn print(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        bail!(
            "tack {} ended with {}: {}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output.stdout)
}

/// Whether a program header of an ELF file names a dynamic loader (`PT_INTERP`); `None` for other
/// files.
fn has_interpreter(elf: &[u8]) -> Option<bool> {
    const CLASS_64_LITTLE_ENDIAN: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    const PT_INTERP: u32 = 3;
    if !elf.starts_with(&CLASS_64_LITTLE_ENDIAN) {
        return None;
    }
    let half = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?));
    let table = u64::from_le_bytes(elf.get(0x20..0x28)?.try_into().ok()?);
    let table = usize::try_from(table).ok()?;
    let (entry, count) = (usize::from(half(0x36)?), usize::from(half(0x38)?));
    for index in 0..count {
        let at = table.checked_add(index * entry)?;
        let kind = elf.get(at..at.checked_add(4)?)?;
        if u32::from_le_bytes(kind.try_into().ok()?) == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test itself is linked dynamically, unless it was built for musl.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_dynamic_loader_is_found() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let dynamic = !cfg!(target_feature = "crt-static");
        assert_eq!(has_interpreter(&this), Some(dynamic));
    }

    #[test]
    fn other_files_have_no_answer() {
        assert_eq!(has_interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(has_interpreter(b"\x7fELF\x02\x01"), None);
    }
}
