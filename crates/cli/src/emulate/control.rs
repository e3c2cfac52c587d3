//! How `tack emulate exec` gets into a host of a running `tack emulate --tun`: over a socket, which
//! passes on the host's network namespace.
//!
//! The socket has an abstract name, so that nothing is left of it, however the emulation ends. Who
//! connects sends the name of a host in a line. The answer is one byte, 0 with the namespace
//! attached, or 1, and then text: the hosts for `/etc/hosts`, or what is wrong. The connection
//! stays open as long as the emulation runs.
//!
//! Every user may bind an abstract name, and connect to one. So each side asks the kernel who the
//! other one is, before it believes or waits for anything: root or the same user.

use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tack_emulator::Host;
use tack_io::namespace::Namespace;

use crate::exit::Failure;

/// Longest name of a host, with its line's end.
const LONGEST: u64 = 64;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Programs that run on hosts at a time.
const MOST: usize = 4_096;

/// Requests that are read at a time; further ones are closed.
const MOST_READ: usize = 64;

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("tack-emulate-{name}"))
}

/// What programs on hosts find in `/etc/hosts`.
pub(super) fn hosts_file<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for host in hosts {
        text.push_str(&format!("{} {}\n", host.ipv4, host.name));
        text.push_str(&format!("{} {}\n", host.ipv6, host.name));
    }
    text
}

/// The socket of a running emulation. Dropping it ends the programs on its hosts.
pub(super) struct Control {
    connected: Arc<Mutex<Vec<UnixStream>>>,
}

impl Control {
    /// Answers requests for `hosts` from now on, on a thread that lasts as long as the process.
    ///
    /// # Errors
    /// `AddrInUse` when another emulation has the name; otherwise what the system says.
    pub(super) fn open(name: &str, hosts: &[Host]) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address(name)?)?;
        let file = hosts_file(hosts);
        let known = hosts
            .iter()
            .map(|host| Ok((host.name.clone(), host.namespace.try_clone()?)))
            .collect::<io::Result<Vec<_>>>()?;
        let connected = Arc::<Mutex<Vec<UnixStream>>>::default();
        let desk = Arc::new(Desk {
            known,
            file,
            connected: Arc::clone(&connected),
            reading: AtomicUsize::new(0),
        });
        std::thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    desk.serve(stream);
                }
            })?;
        Ok(Self { connected })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Ok(mut streams) = self.connected.lock() {
            streams.clear();
        }
    }
}

/// Whether the other end is still there: nobody sends anything after a request.
fn is_open(stream: &UnixStream) -> bool {
    let mut byte = [0];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    !matches!(rustix::net::recv(stream, &mut byte, flags), Ok((_, 0)))
}

/// What requests are answered from.
struct Desk {
    known: Vec<(String, Namespace)>,
    file: String,
    connected: Arc<Mutex<Vec<UnixStream>>>,
    reading: AtomicUsize,
}

impl Desk {
    /// Answers a request on a separate thread, so that a silent client does not delay the others.
    fn serve(self: &Arc<Self>, stream: UnixStream) {
        let is_ours = stream
            .set_write_timeout(Some(PATIENCE))
            .and_then(|()| peer(&stream))
            .map(|user| user.is_none());
        match is_ours {
            Ok(true) => {}
            Ok(false) => {
                let _gone = refuse(&stream, "the emulation belongs to another user");
                return;
            }
            Err(_) => return,
        }
        // Only this thread adds to it.
        if self.reading.load(Ordering::Relaxed) >= MOST_READ {
            return;
        }
        self.reading.fetch_add(1, Ordering::Relaxed);
        let desk = Arc::clone(self);
        let started = std::thread::Builder::new().spawn(move || {
            // Who cannot read the answer has gone.
            if answer(&stream, &desk.known, &desk.file).is_ok()
                && let Ok(mut streams) = desk.connected.lock()
            {
                streams.retain(is_open);
                if streams.len() < MOST {
                    streams.push(stream);
                }
            }
            desk.reading.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            self.reading.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The user at the other end, unless it is root or our own.
fn peer(stream: &UnixStream) -> io::Result<Option<u32>> {
    let user = rustix::net::sockopt::socket_peercred(stream)?.uid;
    let is_ours = user.is_root() || user == rustix::process::geteuid();
    Ok((!is_ours).then(|| user.as_raw()))
}

fn refuse(mut stream: &UnixStream, why: &str) -> io::Result<()> {
    stream.write_all(&[1])?;
    stream.write_all(format!("{why}\0").as_bytes())
}

fn answer(stream: &UnixStream, known: &[(String, Namespace)], file: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut wanted = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut wanted)?;
    let wanted = wanted.trim_end();
    let Some((_, namespace)) = known.iter().find(|(name, _)| name == wanted) else {
        let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(", ");
        refuse(
            stream,
            &format!("no host {wanted:?}; expected one of {names}"),
        )?;
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [namespace.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(
        stream,
        &[IoSlice::new(&[0])],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    let mut writer = stream;
    writer.write_all(format!("{file}\0").as_bytes())
}

/// A way into a host.
pub(super) struct Entrance {
    pub(super) namespace: Namespace,
    pub(super) hosts_file: String,
    /// Open as long as the emulation runs.
    pub(super) stream: UnixStream,
}

/// Asks the emulation called `name` for a host.
pub(super) fn enter(name: &str, host: &str) -> Result<Entrance, Failure> {
    let failed = |error: io::Error| Failure::failed("the emulation does not answer", error);
    let mut stream = address(name)
        .and_then(|address| UnixStream::connect_addr(&address))
        .map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Failure::usage(format!(
                "no emulation called {name:?} is running in this network namespace; start one with `tack emulate --tun`"
            )),
            _ => failed(error),
        })?;
    // Somebody else would choose the network and the names that a program of ours gets.
    if let Some(user) = peer(&stream).map_err(failed)? {
        return Err(Failure::plain(format!(
            "the emulation called {name:?} belongs to user {user}, who could choose the network of \
             this program; it has to be root's or your own: start one with another --name"
        )));
    }
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    match stream.write_all(format!("{host}\n").as_bytes()) {
        // It answers without a question where we may not ask.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.map_err(failed)?,
    }
    let mut kind = [2];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        &stream,
        &mut [IoSliceMut::new(&mut kind)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(|error| failed(error.into()))?;
    let descriptor: Option<OwnedFd> = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let mut text = Vec::new();
    BufReader::new((&stream).take(1 << 20))
        .read_until(0, &mut text)
        .map_err(failed)?;
    text.pop();
    let text = String::from_utf8_lossy(&text).into_owned();
    match (kind, descriptor) {
        ([0], Some(descriptor)) => Ok(Entrance {
            namespace: descriptor.into(),
            hosts_file: text,
            stream,
        }),
        ([1], _) => Err(Failure::usage(text)),
        _ => Err(failed(io::ErrorKind::InvalidData.into())),
    }
}
