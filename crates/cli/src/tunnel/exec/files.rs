//! Files of the system of which the command sees others: they would name servers that it does not
//! reach, or ssh would not trust them.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tack_io::private;

use super::device::NAME_SERVER;

/// Where the machine's configuration is.
const CONFIGURATION: &str = "/etc";
/// What ssh's configuration includes, and what a file there includes on some systems.
const SSH_FILES: &str = "/etc/ssh/ssh_config.d";
const SSH_POLICY: &str = "/etc/crypto-policies/back-ends/openssh.config";
/// Files of ssh that are copied, and the longest of them, bytes.
const MAX_SSH_FILES: usize = 64;
const MAX_SSH_FILE: u64 = 64 * 1024;

/// The files of the system that ssh reads only if they are root's or the user's: those that its
/// configuration includes, as distributions have it. Inside of the user namespace, where root has
/// no number, they would be another user's; so copies of the user's own are shown there.
pub(super) fn trusted_by_ssh() -> Vec<(String, String)> {
    let user = rustix::process::getuid().as_raw();
    if user == 0 {
        return Vec::new();
    }
    let included = fs::read_dir(SSH_FILES).into_iter().flatten().flatten();
    let included = included.map(|entry| entry.path());
    let included = included.take(MAX_SSH_FILES).chain([SSH_POLICY.into()]);
    let copy = |path: PathBuf| {
        // A pipe would hold up who opens it.
        let about = fs::metadata(&path).ok()?;
        // As ssh itself has it: of root or the user, and not for others to write.
        let is_trusted = (about.uid() == 0 || about.uid() == user) && about.mode() & 0o022 == 0;
        if !is_trusted || !about.is_file() || about.len() > MAX_SSH_FILE {
            return None;
        }
        let mut contents = String::new();
        let file = File::open(&path).ok()?;
        file.take(MAX_SSH_FILE).read_to_string(&mut contents).ok()?;
        Some((path.to_str()?.to_owned(), contents))
    };
    included.filter_map(copy).collect()
}

/// Has programs ask the name server behind the device, and nobody else.
///
/// # Errors
/// With words for the user.
pub(super) fn point_names_here() -> io::Result<()> {
    let servers = format!("nameserver {NAME_SERVER}\n");
    let mut own = vec![("resolv.conf", servers)];
    // A resolver that is asked by a socket in the file system answers from the machine's network.
    if let Ok(switch) = fs::read_to_string(Path::new(CONFIGURATION).join("nsswitch.conf")) {
        own.push(("nsswitch.conf", plain_hosts(&switch)));
    }
    // Who may write there is to do so in the machine's directory, and what comes to be there is to
    // stay. So the files alone are covered, until somebody outside replaces one.
    let may_write = rustix::fs::access(CONFIGURATION, rustix::fs::Access::WRITE_OK).is_ok();
    if may_write || shadow(&own).is_err() {
        for (name, contents) in &own {
            put(&format!("{CONFIGURATION}/{name}"), contents)?;
        }
    }
    for cache in ["/run/nscd", "/var/run/nscd"] {
        if Path::new(cache).is_dir() {
            let empty = tempfile::tempdir()?;
            private::put_in_place(empty.path(), Path::new(cache))?;
        }
    }
    Ok(())
}

/// Shows these files in the machine's configuration for good.
fn shadow(own: &[(&str, String)]) -> io::Result<()> {
    let own: Vec<_> = own.iter().map(|(name, text)| (*name, &text[..])).collect();
    // Not to be removed with what is in it: that is the machine's.
    let workshop = tempfile::tempdir()?.keep();
    let shown = private::shadow(Path::new(CONFIGURATION), &own, &workshop);
    let _ = fs::remove_dir(&workshop);
    shown
}

/// Shows these files, each a path and contents, in the place of the machine's. Without one of them
/// ssh refuses to run, and says which file it is about.
pub(super) fn show(files: &[(String, String)]) {
    for (path, contents) in files {
        let _ = put(path, contents);
    }
}

/// The configuration of the name service where only files and name servers are asked for hosts.
fn plain_hosts(switch: &str) -> String {
    let mut lines: Vec<&str> = switch
        .lines()
        .filter(|line| !line.trim_start().starts_with("hosts:"))
        .collect();
    lines.push("hosts: files dns");
    lines.join("\n") + "\n"
}

/// Shows `contents` in the place of a file, to this process and what comes of it.
fn put(target: &str, contents: &str) -> io::Result<()> {
    let place = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(contents.as_bytes())?;
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(readable)?;
        private::put_in_place(file.path(), Path::new(target))
    };
    place().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot show another {target} to the command: {error}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_looked_up_in_files_and_by_name_servers_alone() {
        let switch = "passwd: files systemd\nhosts: mymachines resolve [!UNAVAIL=return] files\n\
                      networks: files\n";
        let plain = plain_hosts(switch);
        assert_eq!(
            plain,
            "passwd: files systemd\nnetworks: files\nhosts: files dns\n"
        );
    }
}
