//! The two processes of `tack exec`. The outer one has the connections to the peer, in the network
//! of the machine. The inner one makes namespaces and a device, passes the device out, and becomes
//! the command. A process of its own, because a process with threads cannot enter a user namespace.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};
use tack::TunOptions;
use tack_io::private;

use super::codes::EXEC_FAILED;
use super::device::{self, Families};
use super::{files, rights};
use crate::exit::{self, Failure};

/// What the inner process is called, by which it knows what it is.
const NAME: &str = "tack exec: inside";
/// First bytes of messages: the device, with IPv4 alone or with both families; a failure.
const DEVICE_V4: u8 = b'4';
const DEVICE_BOTH: u8 = b'6';
const FAILED: u8 = b'!';

/// The inner process, as the outer one sees it.
pub(crate) struct Inside {
    pub(super) process: std::process::Child,
    pub(super) socket: UnixStream,
    device: Option<(TunOptions, OwnedFd)>,
}

impl Inside {
    /// Starts the inner process, and gets its device.
    pub(super) fn start(command: &[OsString]) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::failed("cannot start the inner process", error);
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        let process = Command::new("/proc/self/exe")
            .arg0(NAME)
            .args(command)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map_err(failed)?;
        let mut inside = Self {
            process,
            socket,
            device: None,
        };
        // Its standard input is the socket; the command's comes over it.
        let input = io::stdin();
        rights::send(&inside.socket, b"0", Some(input.as_fd())).map_err(failed)?;
        let (message, descriptor) = rights::receive(&inside.socket).map_err(failed)?;
        let families = match message.first() {
            Some(&DEVICE_V4) => Families::V4,
            Some(&DEVICE_BOTH) => Families::Both,
            Some(&FAILED) => {
                let _ = inside.process.wait();
                return Err(Failure::plain(String::from_utf8_lossy(&message[1..])));
            }
            _ => {
                let _ = inside.process.kill();
                let _ = inside.process.wait();
                return Err(Failure::plain("the inner process ended without a message"));
            }
        };
        let descriptor =
            descriptor.ok_or_else(|| Failure::plain("the inner process sent no device"))?;
        inside.device = Some((device::options(families), descriptor));
        Ok(inside)
    }

    /// The device, which is there once.
    pub(super) fn take_device(&mut self) -> (TunOptions, OwnedFd) {
        self.device.take().expect("taken once")
    }
}

/// Does what the inner process does, if this is it: it returns only if that fails.
pub(crate) fn within() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    if arguments.next()? != NAME {
        return None;
    }
    let command: Vec<OsString> = arguments.collect();
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else {
        return Some(EXEC_FAILED.into());
    };
    let code = match prepare(&socket) {
        Ok(true) => become_command(&socket, &command),
        // The outer process has ended.
        Ok(false) => EXEC_FAILED,
        Err(error) => {
            tell(&socket, &error);
            EXEC_FAILED
        }
    };
    Some(code.into())
}

fn tell(socket: &OwnedFd, words: &dyn std::fmt::Display) {
    let mut message = vec![FAILED];
    message.extend(words.to_string().bytes().take(4000));
    let _ = rights::send(socket, &message, None);
}

/// Enters the namespaces and passes the device out; false when the outer process does not want the
/// command to run.
///
/// # Errors
/// With words for the user.
fn prepare(socket: &OwnedFd) -> io::Result<bool> {
    let (_, input) = rights::receive(socket)?;
    let input = input.ok_or_else(|| io::Error::other("there came no standard input"))?;
    rustix::stdio::dup2_stdin(&input)?;
    drop(input);
    check_device_file()?;
    let trusted = files::trusted_by_ssh();
    private::enter_private()?;
    // The command goes with the outer process, without which it has no network. What it started
    // itself lives on.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let (kind, device) = match device::options(Families::Both).create() {
        Ok(device) => (DEVICE_BOTH, device),
        // Without IPv6 there is IPv4; what is wrong with both, the second try says.
        Err(_) => (DEVICE_V4, device::options(Families::V4).create()?),
    };
    files::point_names_here()?;
    files::show(&trusted);
    rights::send(socket, &[kind], Some(device.as_fd()))?;
    drop(device);
    let (go, _) = rights::receive(socket)?;
    Ok(!go.is_empty())
}

/// Who may not open the file would be told that it is about capabilities.
fn check_device_file() -> io::Result<()> {
    const FILE: &str = "/dev/net/tun";
    let opened = File::options().read(true).write(true).open(FILE);
    let hint = match &opened {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "; everybody may on most systems (mode 0666), since a device takes a capability besides"
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "; this machine has no TUN devices (module tun)"
        }
        Err(_) => "",
    };
    let error = opened.err().unwrap_or_else(|| io::ErrorKind::Other.into());
    Err(io::Error::new(
        error.kind(),
        format!("cannot open {FILE}: {error}{hint}"),
    ))
}

/// Becomes the command; what is returned is why not.
fn become_command(socket: &OwnedFd, command: &[OsString]) -> u8 {
    let Some((program, arguments)) = command.split_first() else {
        return EXEC_FAILED;
    };
    let error = Command::new(program)
        .args(arguments)
        // What let this program in is not for the command.
        .env_remove("TACK_TICKET")
        .exec();
    let (code, words) = exit::not_run(program, &error);
    tell(socket, &words);
    code
}
