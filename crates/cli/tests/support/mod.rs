//! Runs the real program and looks at what it leaves behind.
#![allow(dead_code, reason = "each test binary uses what it needs")]
#![allow(
    clippy::disallowed_methods,
    reason = "a program that hangs is given up"
)]

pub(crate) mod invitation;
pub(crate) mod network;
pub(crate) mod ssh;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
pub(crate) use tack_skip::is_long;

/// Longer than anything here takes on a busy machine; a test that hangs ends here.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn tack() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tack"));
    command.stdin(Stdio::null());
    // Not the identity of whoever runs the tests.
    command.env(
        "TACK_STATE_DIR",
        concat!(env!("CARGO_TARGET_TMPDIR"), "/state"),
    );
    command.env_remove("TACK_TICKET");
    command
}

/// What a program that ended said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The last line of standard output, as JSON.
    pub(crate) fn json(&self) -> Value {
        let line = self
            .stdout
            .lines()
            .last()
            .unwrap_or_else(|| panic!("no output: {self:?}"));
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// Runs a program to its end.
pub(crate) fn finish(command: &mut Command) -> Ended {
    Running::start(command).wait()
}

/// A program under way; killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// What it wrote to standard error so far.
    errors: Arc<Mutex<Vec<u8>>>,
    stderr: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stderr.take().unwrap();
        let errors = Arc::<Mutex<Vec<u8>>>::default();
        let so_far = Arc::clone(&errors);
        let stderr = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = pipe.read(&mut bytes) {
                so_far.lock().unwrap().extend_from_slice(&bytes[..len]);
            }
        });
        let stdout = child.stdout.take().map(BufReader::new);
        Self {
            child,
            stdout,
            errors,
            stderr: Some(stderr),
        }
    }

    /// What it wrote to standard error so far.
    fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors.lock().unwrap()).into_owned()
    }

    /// Waits until standard error has these words.
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound on a real process takes a real clock"
    )]
    pub(crate) fn until_said(&self, words: &str) {
        let began = Instant::now();
        while !self.errors().contains(words) {
            assert!(began.elapsed() < PATIENCE, "{words}: {}", self.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The next line of standard output, as JSON. How far a transfer is, which it says every
    /// second, does not count.
    pub(crate) fn line(&mut self) -> Value {
        loop {
            let line = self.text_line();
            let value: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
            if value["event"] != "progress" {
                return value;
            }
        }
    }

    /// The next line of standard output, as it is.
    pub(crate) fn text_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// What it writes to standard output, to be read elsewhere.
    pub(crate) fn take_stdout(&mut self) -> BufReader<ChildStdout> {
        self.stdout.take().unwrap()
    }

    /// Closes our end of its standard output.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// Highest resident memory so far, bytes.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a bound on a real process takes a real clock"
    )]
    pub(crate) fn status(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "the program does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn wait(mut self) -> Ended {
        self.ended()
    }

    /// Waits for its end; what it said and was not read yet.
    pub(crate) fn ended(&mut self) -> Ended {
        let mut stdout = String::new();
        if let Some(mut reader) = self.stdout.take() {
            reader.read_to_string(&mut stdout).unwrap();
        }
        let code = self.status().code();
        self.stderr.take().unwrap().join().unwrap();
        let stderr = self.errors();
        Ended {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `tack recv` on a free port of loopback, in clear text: `program/meeting.rs` has the encrypted
/// ones.
pub(crate) struct Receiver {
    pub(crate) running: Running,
    pub(crate) address: SocketAddr,
    pub(crate) dir: tempfile::TempDir,
}

impl Receiver {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), options)
    }

    pub(crate) fn start_in(dir: tempfile::TempDir, options: &[&str]) -> Self {
        let mut command = tack();
        command
            .args(["recv", "--insecure", "--listen", "127.0.0.1:0"])
            .args(["--json", "--dir"])
            .arg(dir.path())
            .args(options);
        let mut running = Running::start(&mut command);
        let first = running.line();
        assert_eq!(first["event"], "listening");
        let address = first["address"].as_str().unwrap().parse().unwrap();
        Self {
            running,
            address,
            dir,
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Sends to it and waits for the end.
    pub(crate) fn send(&self, arguments: &[&str]) -> Ended {
        finish(
            tack()
                .args(["send", "--insecure"])
                .args(arguments)
                .arg(self.address.to_string()),
        )
    }
}

/// Everything below a directory: relative path → (kind and mode, seconds of mtime, content).
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root).min_depth(1) {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        let content = if metadata.is_file() {
            std::fs::read(entry.path()).unwrap()
        } else {
            Vec::new()
        };
        let path = entry.path().strip_prefix(root).unwrap().to_owned();
        found.insert(
            path,
            (metadata.permissions().mode(), metadata.mtime(), content),
        );
    }
    found
}

/// Bytes without a pattern, the same for the same seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}
