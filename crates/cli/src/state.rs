//! The folder in which the program remembers: its identity, its peers, its tickets.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use zeroize::Zeroizing;

use crate::exit::Failure;

/// Bytes of a file of ours at most. A thousand peers have a tenth of it.
const MAX_FILE: u64 = 1 << 20;

/// Where the program remembers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StateArgs {
    /// Folder for the identity, the peers and the tickets of this installation [default:
    /// TACK_STATE_DIR, else the platform's folder for configuration]
    #[arg(long, value_name = "DIR", global = true)]
    state_dir: Option<PathBuf>,
}

impl StateArgs {
    /// Opens the folder, and makes it if it is not there.
    pub(crate) fn open(&self) -> Result<StateDir, Failure> {
        let from_environment = || std::env::var_os("TACK_STATE_DIR").filter(|dir| !dir.is_empty());
        let path = match self.state_dir.clone().or(from_environment().map(Into::into)) {
            Some(path) => path,
            None => directories::ProjectDirs::from("", "", "tack")
                .ok_or_else(|| {
                    Failure::usage(
                        "there is no home directory to keep the identity in; give a folder with --state-dir DIR",
                    )
                })?
                .config_dir()
                .to_owned(),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| cannot("create", &path, error))?;
        Ok(StateDir { path })
    }
}

/// The folder. Its files are read and written only by their owner.
#[derive(Clone, Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
}

/// While it lives, no other process of this user changes the folder.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

fn cannot(what: &str, path: &Path, error: io::Error) -> Failure {
    Failure::failed(format!("cannot {what} {}", path.display()), error)
}

impl StateDir {
    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until no other process changes the folder.
    pub(crate) fn lock(&self) -> Result<Lock, Failure> {
        let path = self.path.join("lock");
        let lock = || {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            file.lock()?;
            Ok(file)
        };
        lock()
            .map(|file| Lock { _file: file })
            .map_err(|error| cannot("lock", &path, error))
    }

    /// The contents of a file; `None` when there is none. A file that others could read or change
    /// is refused: they may have done so.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
        let path = self.path.join(name);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot("read", &path, error)),
        };
        let metadata = file
            .metadata()
            .map_err(|error| cannot("read", &path, error))?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(Failure::plain(format!(
                "{0} has mode {mode:04o}, so that other users of this machine may have read or changed it; expected 0600. If \
                 nobody did, `chmod 600 {0}` makes it usable again",
                path.display()
            )));
        }
        if metadata.len() > MAX_FILE {
            return Err(Failure::plain(format!(
                "expected a state file of at most {MAX_FILE} bytes; {} has {}",
                path.display(),
                metadata.len()
            )));
        }
        // Its whole length at once: growing would leave copies of secrets behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(metadata.len() as usize + 1));
        (&mut file)
            .take(MAX_FILE)
            .read_to_end(&mut bytes)
            .map_err(|error| cannot("read", &path, error))?;
        Ok(Some(bytes))
    }

    /// Replaces a file: after a crash it has either its old contents or its new ones.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        let replace = || -> io::Result<()> {
            // Made with mode 0600.
            let mut file = tempfile::Builder::new()
                .prefix(".new-")
                .tempfile_in(&self.path)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            File::open(&self.path)?.sync_all()
        };
        replace().map_err(|error| cannot("write", &path, error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn scratch() -> (tempfile::TempDir, StateDir) {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateArgs {
            state_dir: Some(scratch.path().join("a/b")),
        };
        let state = state.open().unwrap();
        (scratch, state)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_reads_what_is_kept() {
        let (_scratch, state) = scratch();
        assert_eq!(mode(state.path()), 0o700);
        assert!(state.read("identity").unwrap().is_none());
        state.write("identity", b"one").unwrap();
        state.write("identity", b"two").unwrap();
        assert_eq!(mode(&state.path().join("identity")), 0o600);
        assert_eq!(&state.read("identity").unwrap().unwrap()[..], b"two");
        assert_eq!(
            fs::read_dir(state.path()).unwrap().count(),
            1,
            "nothing is left over"
        );
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_words() {
        let (_scratch, state) = scratch();
        state.write("identity", b"secret").unwrap();
        let path = state.path().join("identity");
        for mode in [0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = state.read("identity").unwrap_err().to_string();
            assert!(
                refused.contains(&format!("{mode:04o}")) && refused.contains("chmod 600"),
                "{refused}"
            );
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(state.read("identity").is_ok());
    }

    #[test]
    fn a_file_of_absurd_length_is_not_read() {
        let (_scratch, state) = scratch();
        state.write("peers", b"").unwrap();
        let file = OpenOptions::new()
            .write(true)
            .open(state.path().join("peers"))
            .unwrap();
        file.set_len(MAX_FILE + 1).unwrap();
        assert!(state.read("peers").is_err());
    }
}
