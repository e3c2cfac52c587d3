//! The control socket of a running program: whoever owns it may ask how it is.
//!
//! `status-PID.sock` in the folder `run` of the state folder has mode 0600, in a folder that only
//! its owner enters. Whoever connects gets one line of JSON, and the end. Nothing is read.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::exit::Failure;

/// The folder of the sockets, in the state folder.
const FOLDER: &str = "run";
/// Askers at a time.
const MAX_ASKERS: usize = 8;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer at most.
const MAX_ANSWER: u64 = 64 << 20;

/// The socket; its file is removed when it is dropped.
#[derive(Debug)]
pub(super) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl ControlSocket {
    /// Makes the socket of this process in the state folder `state`.
    pub(super) fn open(state: &Path) -> Result<Self, Failure> {
        let folder = state.join(FOLDER);
        let path = folder.join(format!("status-{}.sock", std::process::id()));
        let open = || {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)?;
            // It may have been there with another mode.
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
            // A process with this number that ended before cannot need it.
            let _ = fs::remove_file(&path);
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            io::Result::Ok(listener)
        };
        let listener = open().map_err(|error| {
            Failure::failed(
                format!("cannot make the control socket {}", path.display()),
                error,
            )
        })?;
        Ok(Self { listener, path })
    }

    /// Answers with what `status` makes, until dropped.
    pub(super) async fn serve(self, status: impl Fn() -> Value + Send + Sync + 'static) {
        let status = Arc::new(status);
        let places = Arc::new(Semaphore::new(MAX_ASKERS));
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                continue;
            };
            let status = Arc::clone(&status);
            tokio::spawn(async move {
                let mut line = status().to_string();
                line.push('\n');
                let answering = async {
                    stream.write_all(line.as_bytes()).await?;
                    stream.shutdown().await
                };
                let _ = tokio::time::timeout(PATIENCE, answering).await;
                drop(place);
            });
        }
    }
}

/// What the running programs of the state folder `state` say of themselves. Sockets that nobody
/// listens on any more are removed.
pub(crate) async fn ask_all(state: &Path) -> Result<Vec<Value>, Failure> {
    let folder = state.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let what = format!("cannot read {}", folder.display());
            return Err(Failure::failed(what, error));
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "sock")
    });
    paths.sort();
    let mut answers = Vec::new();
    for path in paths {
        match tokio::time::timeout(PATIENCE, ask(&path)).await {
            Ok(Ok(answer)) => answers.push(answer),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&path);
            }
            Ok(Err(error)) => eprintln!("tack: {}: {error}", path.display()),
            Err(_) => eprintln!("tack: {}: no answer", path.display()),
        }
    }
    Ok(answers)
}

async fn ask(path: &Path) -> io::Result<Value> {
    let stream = UnixStream::connect(path).await?;
    let mut text = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut text).await?;
    serde_json::from_str(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
