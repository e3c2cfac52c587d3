//! Real-time priority: threads of this process run before ordinary ones, and so are seldom late.

use std::io;

/// A low one: above ordinary programs and below the system's own real-time threads (sched(7): 1 to
/// 99).
#[cfg(target_os = "linux")]
const PRIORITY: libc::c_int = 10;

/// Asks for real-time priority for all threads of this process; those that they start later inherit
/// it.
///
/// # Errors
/// `PermissionDenied` where the system wants a privilege for that: on Linux root, `CAP_SYS_NICE`,
/// or a limit (`ulimit -r`) of at least 10. `Unsupported` elsewhere.
pub fn request() -> io::Result<()> {
    system::request()
}

/// Lets this thread run as ordinary ones do, also if it has inherited real-time priority. It is one
/// system call, which takes no lock and allocates nothing.
#[cfg(target_os = "linux")]
pub fn leave() {
    // Where this thread has no such priority, there is nothing to change.
    let priority: libc::c_int = 0;
    // SAFETY: the call reads one integer, which outlives it, and touches no memory of ours.
    #[expect(unsafe_code, reason = "no safe wrapper of this call exists")]
    let _unchanged = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_OTHER,
            &raw const priority,
        )
    };
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use super::PRIORITY;

    pub(super) fn request() -> io::Result<()> {
        for thread in std::fs::read_dir("/proc/self/task")? {
            let name = thread?.file_name();
            if let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) {
                raise(thread)?;
            }
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "no safe wrapper of this call exists")]
    fn raise(thread: libc::pid_t) -> io::Result<()> {
        // The kernel's struct sched_param. That of musl has more fields, and its function only
        // fails: POSIX has it set a process, which Linux cannot.
        let parameters: libc::c_int = PRIORITY;
        // SAFETY: the call reads one integer, which outlives it, and touches no memory of ours.
        let outcome = unsafe {
            libc::syscall(
                libc::SYS_sched_setscheduler,
                thread,
                libc::SCHED_RR,
                &raw const parameters,
            )
        };
        match outcome {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                // A thread that ended meanwhile.
                error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
                error => Err(error),
            },
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    pub(super) fn request() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    /// The policy of a thread of this process, from proc(5): field 41 of its status.
    fn policy(thread: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        let (_, fields) = status.rsplit_once(") ").unwrap();
        fields.split(' ').nth(38).unwrap().to_owned()
    }

    #[test]
    fn all_threads_have_the_priority_or_the_system_says_why_not() {
        // In a process of its own: the priority of the others must not change.
        if std::env::var_os("TACK_IO_REALTIME").is_none() {
            let program = std::env::current_exe().unwrap();
            let name = "realtime::tests::all_threads_have_the_priority_or_the_system_says_why_not";
            let ended = std::process::Command::new(program)
                .args(["--exact", name])
                .env("TACK_IO_REALTIME", "1")
                .status()
                .unwrap();
            assert!(ended.success());
            return;
        }
        match super::request() {
            Ok(()) => {
                for thread in std::fs::read_dir("/proc/self/task").unwrap() {
                    let thread = thread.unwrap().file_name();
                    assert_eq!(policy(thread.to_str().unwrap()), "2", "SCHED_RR");
                }
                super::leave();
                let own = std::fs::read_link("/proc/thread-self").unwrap();
                let own = own.file_name().unwrap();
                assert_eq!(policy(own.to_str().unwrap()), "0", "SCHED_OTHER");
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
        }
    }
}
