//! How a program that is started in a network namespace sees the file system, and when it ends.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives this thread, and programs that it starts from now on, a view of the file system of their
/// own. What is mounted later here is seen by nobody else.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_ADMIN; otherwise what the system says.
pub fn private_mounts() -> io::Result<()> {
    // SAFETY: unsharing is unsafe because of descriptor tables (`UnshareFlags::FILES`), which stay
    // shared: only the mounts of this thread change.
    #[expect(unsafe_code, reason = "no safe wrapper of this one flag exists")]
    unsafe {
        unshare_unsafe(UnshareFlags::NEWNS)?;
    }
    mount_change(
        c"/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    Ok(())
}

/// Lets the file `path` have `contents` for this thread and programs that it starts. Takes
/// [`private_mounts`] before.
///
/// # Errors
/// `NotFound` if there is no such file; otherwise what the system says.
pub fn cover_file(path: &Path, contents: &str) -> io::Result<()> {
    // A mount needs a place in a file system; its name there is not needed afterwards.
    let unique = format!(
        "tack-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let source = std::env::temp_dir().join(unique);
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(&source)?;
    let covered = io::Write::write_all(&mut file, contents.as_bytes())
        .and_then(|()| mount_bind(&source, path).map_err(io::Error::from));
    fs::remove_file(&source)?;
    covered
}

/// Lets `/sys` show the devices of the network namespace that this thread is in. Takes
/// [`private_mounts`] before.
///
/// # Errors
/// What the system says.
pub fn mount_sys() -> io::Result<()> {
    const NO_OPTIONS: Option<&CStr> = None;
    // As it is elsewhere, a container's say, it cannot always be taken off.
    let _kept = unmount(c"/sys", UnmountFlags::DETACH);
    mount(
        c"tack",
        c"/sys",
        c"sysfs",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        NO_OPTIONS,
    )?;
    Ok(())
}

/// Has the kernel kill the program that `command` starts when the thread that starts it ends,
/// however it ends.
pub fn die_with_parent(command: &mut Command) {
    let die = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec only what is safe in a signal handler may happen: this is one
    // system call, which takes no lock and allocates nothing.
    #[expect(
        unsafe_code,
        reason = "what runs between fork and exec takes a promise"
    )]
    unsafe {
        command.pre_exec(die);
    }
}

/// Lets the program that `command` starts run with the priority of ordinary ones, also if the
/// thread that starts it has real-time priority.
pub fn with_ordinary_priority(command: &mut Command) {
    let lower = || {
        crate::realtime::leave();
        Ok(())
    };
    // SAFETY: as above: one system call, without locks and memory.
    #[expect(
        unsafe_code,
        reason = "what runs between fork and exec takes a promise"
    )]
    unsafe {
        command.pre_exec(lower);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;
    use crate::namespace::Namespace;

    #[test]
    fn a_program_sees_the_files_and_devices_of_its_namespace() {
        let seen = std::thread::spawn(|| -> Result<String, io::Error> {
            Namespace::enter_new()?;
            private_mounts()?;
            cover_file(Path::new("/etc/hosts"), "192.0.2.7 elsewhere\n")?;
            mount_sys()?;
            let output = Command::new("sh")
                .args(["-c", "cat /etc/hosts; ls /sys/class/net"])
                .output()?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        });
        match seen.join().unwrap() {
            Ok(seen) => assert_eq!(seen, "192.0.2.7 elsewhere\nlo\n"),
            Err(error) => tack_skip::skipped(format_args!("no namespaces: {error}")),
        }
        let outside = fs::read_to_string("/etc/hosts").unwrap();
        assert!(!outside.contains("elsewhere"));
    }

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let child = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            die_with_parent(command.arg("100").stdin(Stdio::null()));
            command.spawn().unwrap()
        });
        let status = child.join().unwrap().wait().unwrap();
        assert!(!status.success());
    }
}
