//! `cargo xtask deps`: the direction of dependencies, circles of files, `no_std` and `unsafe`, and
//! what has a file of its own: places, comments.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{circles, comments, doctests, places, sources};

/// What a crate is allowed.
struct Room {
    name: &'static str,
    /// Crates of ours it may use.
    uses: &'static [&'static str],
    /// Crates of ours that its tests and benchmarks may use besides.
    tests_use: &'static [&'static str],
    purity: Purity,
    unsafety: Unsafety,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purity {
    /// `no_std + alloc`: no clock, no socket, no thread.
    Pure,
    Std,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unsafety {
    Forbidden,
    Allowed,
}

const fn room(name: &'static str, uses: &'static [&'static str]) -> Room {
    Room {
        name,
        uses,
        tests_use: &[],
        purity: Purity::Std,
        unsafety: Unsafety::Forbidden,
    }
}

const BASE: &str = "tack-base";
const WIRE: &str = "tack-wire";
const TCP: &str = "tack-tcp";
const ROHC: &str = "tack-rohc";
const WLAN: &str = "tack-wlan";
const TESTKIT: &str = "tack-testkit";
const SIM: &str = "tack-sim";
const IO: &str = "tack-io";
const EMULATOR: &str = "tack-emulator";
const PLOT: &str = "tack-plot";
const STATS: &str = "tack-stats";
const SWEEP: &str = "tack-sweep";
const LAB: &str = "tack-lab";
const TACK: &str = "tack";
const PAIRING: &str = "tack-pairing";
const SKIP: &str = "tack-skip";

/// The map of ARCHITECTURE.md, which nothing compares with this: change both. A crate that is not
/// here does not pass.
const ROOMS: &[Room] = &[
    Room {
        purity: Purity::Pure,
        ..room(BASE, &[])
    },
    Room {
        purity: Purity::Pure,
        ..room(WIRE, &[BASE])
    },
    Room {
        purity: Purity::Pure,
        tests_use: &[TESTKIT],
        ..room(TCP, &[BASE, WIRE])
    },
    Room {
        purity: Purity::Pure,
        tests_use: &[SKIP],
        ..room(ROHC, &[BASE, WIRE])
    },
    Room {
        purity: Purity::Pure,
        tests_use: &[SKIP],
        ..room(WLAN, &[BASE])
    },
    room(SKIP, &[]),
    Room {
        tests_use: &[SKIP],
        ..room(TESTKIT, &[BASE, WIRE, TCP])
    },
    Room {
        tests_use: &[TESTKIT, SKIP],
        ..room(SIM, &[BASE, WIRE, TCP, ROHC, WLAN])
    },
    Room {
        tests_use: &[SKIP],
        unsafety: Unsafety::Allowed,
        ..room(IO, &[BASE, WIRE])
    },
    Room {
        tests_use: &[SIM, TESTKIT, SKIP],
        ..room(TACK, &[BASE, WIRE, TCP, IO])
    },
    room(PLOT, &[]),
    room(PAIRING, &[TACK]),
    Room {
        tests_use: &[SKIP],
        ..room(EMULATOR, &[BASE, WIRE, WLAN, SIM, IO])
    },
    room(STATS, &[PLOT]),
    room(SWEEP, &[BASE, SIM, PLOT, STATS]),
    room(LAB, &[BASE, WIRE, TCP, WLAN, SIM, PLOT, STATS, SWEEP]),
    Room {
        tests_use: &[SKIP],
        ..room(
            "tack-cli",
            &[
                BASE, WIRE, TCP, WLAN, SIM, IO, TACK, EMULATOR, PLOT, STATS, SWEEP, LAB, PAIRING,
            ],
        )
    },
    room("xtask", &[]),
];

/// A bare-metal target: what compiles for it cannot reach an operating system.
const NO_STD_TARGET: &str = "thumbv7em-none-eabi";

/// Manifests of the workspaces beside this one, whose files are looked at for circles too.
const BESIDE: [&str; 2] = ["crates/py/Cargo.toml", "fuzz/Cargo.toml"];

/// The part of `cargo metadata` that is looked at.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `null` for a normal dependency, else `dev` or `build`.
    kind: Option<String>,
    /// Set for crates of this workspace.
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
    /// Whether rustdoc runs the examples in its documentation.
    doctest: bool,
}

impl Target {
    /// True for a library or a program, false for tests, benchmarks, examples and build scripts.
    fn is_product(&self) -> bool {
        self.kind
            .iter()
            .any(|kind| matches!(kind.as_str(), "lib" | "bin"))
    }
}

pub(crate) fn check() -> Result<()> {
    let metadata = metadata_of(None)?;
    let mut problems = directions(&metadata.packages);
    let mut roots = crate_roots(&metadata.packages);
    for manifest in BESIDE {
        let metadata = metadata_of(Some(&metadata.workspace_root.join(manifest)))?;
        roots.extend(crate_roots(&metadata.packages));
    }
    problems.extend(circles::problems(&metadata.workspace_root, &roots)?);
    for package in &metadata.packages {
        if let Some(room) = ROOMS.iter().find(|room| room.name == package.name) {
            problems.extend(attributes(&metadata.workspace_root, package, room)?);
        }
    }
    let manifest = fs::read_to_string(metadata.workspace_root.join("Cargo.toml"))?;
    problems.extend(reasons(&manifest));
    problems.extend(comments::problems(&metadata.workspace_root)?);
    for folder in folders_without_doctests(&metadata) {
        problems.extend(doctests::problems(&metadata.workspace_root, folder)?);
    }
    let architecture = fs::read_to_string(metadata.workspace_root.join("ARCHITECTURE.md"))?;
    let places = places::check(&metadata.workspace_root, &architecture);
    let places = places.unwrap_or_else(|error| {
        problems.push(error.to_string());
        0
    });
    if !problems.is_empty() {
        bail!(
            "{} broken rule(s)\n  {}",
            problems.len(),
            problems.join("\n  ")
        );
    }
    crate::output::write(&format!(
        "{} crates use only what lies below them; no new circles of files; unsafe code only in {IO}; \
         {places} places in ARCHITECTURE.md exist\n",
        metadata.packages.len()
    ))?;
    build_without_std(&metadata.workspace_root)
}

/// What cargo says of the workspace of `manifest`, or of this one.
fn metadata_of(manifest: Option<&Path>) -> Result<Metadata> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    if let Some(manifest) = manifest {
        command.arg("--manifest-path").arg(manifest);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("cargo metadata failed");
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed something unexpected")
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The root files of all that is compiled: libraries, programs, tests, benchmarks, examples and
/// build scripts.
fn crate_roots(packages: &[Package]) -> Vec<PathBuf> {
    packages
        .iter()
        .flat_map(|package| &package.targets)
        .map(|target| target.src_path.clone())
        .collect()
}

/// The folders of the libraries whose examples rustdoc does not run, below the workspace root.
fn folders_without_doctests(metadata: &Metadata) -> impl Iterator<Item = &Path> {
    let targets = metadata
        .packages
        .iter()
        .flat_map(|package| &package.targets);
    targets
        .filter(|target| !target.doctest && target.kind.iter().any(|kind| kind == "lib"))
        .filter_map(|target| target.src_path.parent())
        .map(|folder| {
            folder
                .strip_prefix(&metadata.workspace_root)
                .unwrap_or(folder)
        })
}

/// What breaks the table of [`ROOMS`].
fn directions(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages {
        let Some(room) = ROOMS.iter().find(|room| room.name == package.name) else {
            problems.push(format!(
                "crate {} is not on the map: say in crates/xtask/src/deps.rs and ARCHITECTURE.md what it may use",
                package.name
            ));
            continue;
        };
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some())
        {
            let name = dependency.name.as_str();
            let in_tests = dependency.kind.as_deref() == Some("dev");
            if !(room.uses.contains(&name) || in_tests && room.tests_use.contains(&name)) {
                let kind = if in_tests { "in its tests " } else { "" };
                let allowed = if room.uses.is_empty() {
                    "no crate of ours".to_owned()
                } else {
                    room.uses.join(", ")
                };
                problems.push(format!(
                    "{} uses {name} {kind}but may use {allowed}",
                    package.name
                ));
            }
        }
    }
    problems
}

/// Missing crate attributes, and unsafe code where none may be.
fn attributes(root: &Path, package: &Package, room: &Room) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for target in package.targets.iter().filter(|target| target.is_product()) {
        let text = fs::read_to_string(&target.src_path)?;
        let path = target
            .src_path
            .strip_prefix(root)
            .unwrap_or(&target.src_path)
            .display();
        let has = |attribute: &str| text.lines().any(|line| line.trim() == attribute);
        if room.purity == Purity::Pure && !has("#![no_std]") {
            problems.push(format!("{path} lacks #![no_std]: {} is pure", room.name));
        }
        if room.unsafety == Unsafety::Forbidden && !has("#![forbid(unsafe_code)]") {
            problems.push(format!(
                "{path} lacks #![forbid(unsafe_code)]: only {IO} may have unsafe code"
            ));
        }
    }
    if room.unsafety == Unsafety::Forbidden {
        let folder = package.manifest_path.parent().unwrap_or(root);
        for source in sources::below(root, folder.strip_prefix(root).unwrap_or(folder))? {
            for line in unsafe_lines(&source.text) {
                problems.push(format!(
                    "{}:{line}: unsafe code; move it to {IO} with its safety argument",
                    source.path.display()
                ));
            }
        }
    }
    Ok(problems)
}

/// Numbers of the lines that open unsafe code. Tests and benchmarks are crate roots of their own,
/// which the attribute of the library does not reach.
fn unsafe_lines(text: &str) -> Vec<usize> {
    let opens = |code: &str| {
        code.match_indices("unsafe").any(|(at, keyword)| {
            let before = code[..at].chars().next_back();
            let after = code[at + keyword.len()..].trim_start();
            before.is_none_or(|c| c.is_whitespace() || matches!(c, '{' | '(' | '[' | '='))
                && ["{", "(", "fn ", "impl", "trait ", "extern "]
                    .iter()
                    .any(|next| after.starts_with(next))
        })
    };
    let code_of = |line| sources::split_comment(line).0;
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| opens(code_of(line)))
        .map(|(number, _)| number)
        .collect()
}

/// Third-party crates in the workspace manifest without the reason why they are there.
fn reasons(manifest: &str) -> Vec<String> {
    let table = manifest
        .lines()
        .skip_while(|line| line.trim() != "[workspace.dependencies]")
        .skip(1);
    table
        .take_while(|line| !line.starts_with('['))
        .filter(|line| line.contains(" = ") && !line.contains("path = ") && !line.contains('#'))
        .map(|line| {
            let name = line.split_once(' ').map_or(line, |(name, _)| name);
            format!("Cargo.toml: {name} has no comment that says why it is used")
        })
        .collect()
}

/// Compiles the pure crates for a target without an operating system, if it is installed here.
fn build_without_std(root: &Path) -> Result<()> {
    let pure: Vec<_> = ROOMS
        .iter()
        .filter(|room| room.purity == Purity::Pure)
        .map(|room| room.name)
        .collect();
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", NO_STD_TARGET])
        .output()?;
    let folder = String::from_utf8_lossy(&libraries.stdout);
    if !libraries.status.success() || !Path::new(folder.trim()).is_dir() {
        crate::output::write(&format!(
            "SKIPPED building {} for {NO_STD_TARGET}: `rustup target add {NO_STD_TARGET}` installs it (their #![no_std] was checked)\n",
            pure.join(", ")
        ))?;
        return Ok(());
    }
    let mut command = cargo();
    command
        .current_dir(root)
        .args(["check", "--quiet", "--target", NO_STD_TARGET]);
    for name in &pure {
        command.args(["--package", name]);
    }
    if !command.status()?.success() {
        bail!(
            "{} must compile for {NO_STD_TARGET}, that is without std",
            pure.join(", ")
        );
    }
    crate::output::write(&format!(
        "{} compile for {NO_STD_TARGET}, that is without std\n",
        pure.join(", ")
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies.iter().map(|(name, kind)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: name.starts_with("tack").then(PathBuf::new),
        });
        Package {
            name: name.to_owned(),
            manifest_path: PathBuf::new(),
            dependencies: dependencies.collect(),
            targets: Vec::new(),
        }
    }

    #[test]
    fn downward_dependencies_pass() {
        let packages = [
            package(WIRE, &[(BASE, None), ("arrayvec", None)]),
            package(TCP, &[(BASE, None), (WIRE, None), (TESTKIT, Some("dev"))]),
        ];
        assert_eq!(directions(&packages), Vec::<String>::new());
    }

    #[test]
    fn upward_dependencies_and_strangers_are_named() {
        let packages = [
            package(BASE, &[(WIRE, None)]),
            package(TCP, &[(TESTKIT, None)]),
            package(WIRE, &[(TESTKIT, Some("dev"))]),
            package("tack-new", &[]),
        ];
        assert_eq!(
            directions(&packages),
            [
                "tack-base uses tack-wire but may use no crate of ours",
                "tack-tcp uses tack-testkit but may use tack-base, tack-wire",
                "tack-wire uses tack-testkit in its tests but may use tack-base",
                "crate tack-new is not on the map: say in crates/xtask/src/deps.rs and ARCHITECTURE.md what it may use",
            ]
        );
    }

    #[test]
    fn the_map_has_no_cycle() {
        // Every room may use only rooms that stand before it.
        for (index, room) in ROOMS.iter().enumerate() {
            for used in room.uses {
                assert!(
                    ROOMS[..index].iter().any(|below| below.name == *used),
                    "{} uses {used}",
                    room.name
                );
            }
        }
    }

    #[test]
    fn the_keyword_is_found_only_as_code() {
        let lines = [
            "a// unsafe {",
            "un\u{73}afe { x }",
            "#![forbid(unsafe_code)]",
            "pub un\u{73}afe fn f()",
            "that only io is unsafe, said a text",
            "#[un\u{73}afe(no_mangle)]",
            "and so is",
            "this unsafe",
        ];
        assert_eq!(unsafe_lines(&lines.join("\n")), [2, 4, 6]);
    }

    #[test]
    fn a_dependency_without_a_reason_is_named() {
        let manifest = "[workspace.dependencies]\ntack-base = { path = \"x\" }\nbytes = \"1\" # why\nlog = \"0.4\"\n[other]\nx = \"1\"\n";
        assert_eq!(
            reasons(manifest),
            ["Cargo.toml: log has no comment that says why it is used"]
        );
    }
}
