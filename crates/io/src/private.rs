//! A network and mounts of its own for one program, without privileges: a user namespace in which
//! the program's user is who it is outside, with a network namespace and a mount namespace that
//! belong to it (user_namespaces(7)).

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_move, mount_remount, unmount,
};
use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::namespace::raise_loopback;

/// Moves this process into new user, network and mount namespaces. Until it executes another
/// program it has all capabilities there, and may set up devices, addresses and mounts; that
/// program has none, unless the user is root. The loopback device is up, and what is mounted from
/// now on is seen by this process and its descendants alone. To be called before the process has
/// threads.
///
/// # Errors
/// With words: the system has no unprivileged user namespaces, or they are turned off.
pub fn enter_private() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let explain = |error: io::Error| {
        let hint = why_not().unwrap_or_default();
        io::Error::new(
            error.kind(),
            format!("this machine gives no user namespace of its own: {error}{hint}"),
        )
    };
    // SAFETY: unsharing is unsafe because of descriptor tables (`UnshareFlags::FILES`), which stay
    // shared.
    #[expect(unsafe_code, reason = "no safe wrapper of these flags exists")]
    unsafe {
        unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWNS)
            .map_err(|error| explain(error.into()))?;
    }
    // A group may be mapped without privileges once groups can no longer be changed.
    fs::write("/proc/self/setgroups", "deny").map_err(explain)?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(explain)?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(explain)?;
    let alone = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", alone).map_err(|error| explain(error.into()))?;
    raise_loopback().map_err(explain)
}

/// Keeps a descriptor that this process was started with from programs that it starts.
///
/// # Errors
/// `InvalidInput` for a number that is none; otherwise what the system says, such as that it is not
/// open.
pub fn close_on_exec(descriptor: u32) -> io::Result<()> {
    let descriptor = i32::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes numbers alone. The flag changes nothing for who owns the descriptor,
    // except in programs that are started, which know nothing of it.
    #[expect(unsafe_code, reason = "safe wrappers take a borrowed descriptor")]
    let done = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What turns user namespaces off, as far as the system says it.
fn why_not() -> Option<&'static str> {
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|it| it.trim() == value);
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        Some("; they are turned off by the sysctl kernel.unprivileged_userns_clone=0")
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        Some("; they are turned off by the sysctl user.max_user_namespaces=0")
    } else if is(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        Some(
            "; AppArmor restricts them by the sysctl kernel.apparmor_restrict_unprivileged_userns=1: \
             set it to 0, or give this program a profile that permits `userns`",
        )
    } else {
        None
    }
}

/// Shows `contents` in the place of the file `target`, to this process and its descendants. The
/// contents may be a file that is removed afterwards.
///
/// # Errors
/// What the system says; `NotFound` without such a file.
pub fn put_in_place(contents: &Path, target: &Path) -> io::Result<()> {
    Ok(mount_bind(contents, target)?)
}

/// What a directory is called that shows in a [`shadow`] what it hides.
const HIDDEN: &str = ".host";

/// Shows another directory in the place of `target`, to this process and its descendants. The files
/// `own`, each a name and contents, are part of it, whatever is done to files of these names in
/// `target` itself: a mount over a file ([`put_in_place`]) is gone when somebody outside replaces
/// the file (rename(2)), and this is not. Other files are those of `target`, also when they are
/// replaced; directories are the same ones. Entries that come to be in `target` later are not
/// there, and new ones cannot be made. `workshop` is an empty directory, which may be removed
/// afterwards.
///
/// # Errors
/// What the system says; everything is as before then.
pub fn shadow(target: &Path, own: &[(&str, &str)], workshop: &Path) -> io::Result<()> {
    const FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);
    const OPTIONS: Option<&CStr> = Some(c"mode=755,size=4m");
    mount(c"tack", workshop, c"tmpfs", FLAGS, OPTIONS)?;
    let made = fill(target, own, workshop).and_then(|()| {
        let read_only = FLAGS | MountFlags::BIND | MountFlags::RDONLY;
        mount_remount(workshop, read_only, c"")?;
        Ok(mount_move(workshop, target)?)
    });
    if made.is_err() {
        // With all mounts below it.
        let _ = unmount(workshop, UnmountFlags::DETACH);
    }
    made
}

fn fill(target: &Path, own: &[(&str, &str)], place: &Path) -> io::Result<()> {
    let hidden = place.join(HIDDEN);
    let directory = |path: &Path| fs::DirBuilder::new().mode(0o755).create(path);
    directory(&hidden)?;
    mount_bind_recursive(target, &hidden)?;
    for entry in fs::read_dir(&hidden)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if own.iter().any(|(own, _)| name == *own) || name == HIDDEN {
            continue;
        }
        let shown = place.join(&name);
        let link = || symlink(Path::new(HIDDEN).join(&name), &shown);
        if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &shown)?;
        } else if kind.is_dir() {
            directory(&shown)?;
            // Where that is not permitted, a link serves, except for what leads up from there.
            if mount_bind_recursive(entry.path(), &shown).is_err() {
                fs::remove_dir(&shown)?;
                link()?;
            }
        } else {
            link()?;
        }
    }
    for (name, contents) in own {
        let path = place.join(name);
        fs::write(&path, contents)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}
