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
    let holds = |part| has(&elf, part).context("the binary is not a 64-bit little-endian ELF file");
    ensure!(
        !holds(&INTERPRETER)?,
        "{} names a dynamic loader; expected a static binary",
        built.display()
    );
    ensure!(
        !holds(&SYMBOLS)?,
        "{} has a symbol table; expected a stripped binary",
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

/// An entry of one of an ELF file's tables of headers (System V ABI).
struct Entry {
    /// Where the file's header has the place of the table, the length of an entry, and their
    /// number.
    table: [usize; 3],
    /// Where an entry has its type, and the type.
    kind: (usize, u32),
}

/// The program header that names a dynamic loader (`PT_INTERP`).
const INTERPRETER: Entry = Entry {
    table: [0x20, 0x36, 0x38],
    kind: (0, 3),
};
/// The section with the symbols that a linker uses, which nothing needs at run time (`SHT_SYMTAB`).
const SYMBOLS: Entry = Entry {
    table: [0x28, 0x3a, 0x3c],
    kind: (4, 2),
};

/// Whether an ELF file has such an entry; `None` for other files.
fn has(elf: &[u8], entry: &Entry) -> Option<bool> {
    const CLASS_64_LITTLE_ENDIAN: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    if !elf.starts_with(&CLASS_64_LITTLE_ENDIAN) {
        return None;
    }
    let half = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?));
    let [table, len, count] = entry.table;
    let table = u64::from_le_bytes(elf.get(table..table + 8)?.try_into().ok()?);
    let table = usize::try_from(table).ok()?;
    let (len, count) = (usize::from(half(len)?), usize::from(half(count)?));
    let (kind, wanted) = entry.kind;
    for index in 0..count {
        let at = table.checked_add(index * len)?.checked_add(kind)?;
        let found = elf.get(at..at.checked_add(4)?)?;
        if u32::from_le_bytes(found.try_into().ok()?) == wanted {
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
        assert_eq!(has(&this, &INTERPRETER), Some(dynamic));
    }

    /// Tests are not stripped.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_symbol_table_is_found() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(has(&this, &SYMBOLS), Some(true));
    }

    #[test]
    fn other_files_have_no_answer() {
        for part in [INTERPRETER, SYMBOLS] {
            assert_eq!(has(b"#!/bin/sh\n", &part), None);
            assert_eq!(has(b"\x7fELF\x02\x01", &part), None);
        }
    }
}
