//! A server of ssh for a test alone: its key, the key that opens it, and its configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The server of ssh, which is not in every user's path.
pub(crate) fn sshd() -> Option<PathBuf> {
    tack_skip::path_of("sshd").or_else(|| in_sbin("sshd"))
}

/// A program among those of the system's administration.
pub(crate) fn in_sbin(name: &str) -> Option<PathBuf> {
    Some(Path::new("/usr/sbin").join(name)).filter(|file| file.exists())
}

/// Puts `host-key`, `user-key` and `sshd_config` into a folder. Returns a line of a shell that runs
/// the server, which takes root with the user's key, at an address.
///
/// # Panics
/// Where there is no [`sshd`] or no `ssh-keygen`.
pub(crate) fn server(folder: &Path, at: &str, port: u16) -> String {
    for name in ["host-key", "user-key"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.join(name))
            .status();
        assert!(made.unwrap().success());
    }
    // sshd wants this folder, which an unbooted machine lacks.
    let _ = fs::create_dir_all("/run/sshd");
    let here = folder.display();
    let config = format!(
        "ListenAddress {at}\nPort {port}\nHostKey {here}/host-key\n\
         AuthorizedKeysFile {here}/user-key.pub\nPermitRootLogin prohibit-password\n\
         StrictModes no\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n"
    );
    fs::write(folder.join("sshd_config"), config).unwrap();
    // It wants to be called by its whole path.
    format!(
        "exec {} -D -e -f {here}/sshd_config",
        sshd().expect("a server of ssh").display()
    )
}

/// Options of ssh with the key in a folder, without a word from the files of whoever runs the test.
pub(crate) fn options(folder: &Path) -> String {
    let here = folder.display();
    format!(
        "-F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile={here}/known_hosts \
         -i {here}/user-key -o ControlPath=none -o LogLevel=ERROR"
    )
}
