//! A download by the kernel's TCP to a program whose reads do not matter to acknowledgements: it
//! reads seldom, so that it hardly ever holds the socket while a segment comes, and its socket has
//! a low-water mark that is never reached, so that the kernel does not leave an acknowledgement to
//! the next read.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::Scope;
use std::time::{Duration, Instant};

use tack_emulator::Host;
use tack_io::namespace::Namespace;
use tack_io::socket_options;

use super::plan::{Plan, Trouble, UNREACHED};

/// Time between two reads.
const PAUSE: Duration = Duration::from_millis(20);

/// Bytes of a read, and of a write.
const READ: usize = 4 << 20;
const WRITE: usize = 128 << 10;

/// More than comes between two reads, bytes.
const LOW_WATER: u32 = 16 << 20;

/// Longest time that either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);

fn failed(error: &dyn std::fmt::Display) -> Trouble {
    Trouble::Failed(error.to_string())
}

/// Moves bytes from `server` to `station`. Returns the goodput, bits a second. This thread then has
/// ordinary priority, as other programs have.
pub(super) fn download(server: &Host, station: &Host, plan: &Plan) -> Result<f64, Trouble> {
    tack_io::realtime::leave();
    std::thread::scope(|scope| {
        let listener = within(scope, &station.namespace, || {
            TcpListener::bind((station.ipv4, 0))
        })?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let connection = within(scope, &server.namespace, move || {
            let connection = TcpStream::connect_timeout(&address, PATIENCE)?;
            rustix::net::sockopt::set_tcp_congestion(&connection, &plan.congestion)?;
            if plan.stack.is_always_paced() {
                socket_options::set_max_pacing_rate(&connection, UNREACHED)?;
            }
            Ok(connection)
        })?;
        let sender = scope.spawn(|| send(connection, plan.omit + plan.length));
        let goodput = listener
            .accept()
            .and_then(|(connection, _)| receive(connection, plan))
            .map_err(|error| failed(&error));
        // It ends with the connection, if not before.
        drop(listener);
        let _sent = sender.join();
        goodput
    })
}

/// What `open` opens in `namespace`, on a thread of its own.
fn within<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    namespace: &'scope Namespace,
    open: impl FnOnce() -> std::io::Result<T> + Send + 'scope,
) -> Result<T, Trouble> {
    let opened = scope.spawn(|| {
        namespace.enter()?;
        open()
    });
    opened
        .join()
        .map_err(|_| failed(&"a thread ended by a panic"))?
        .map_err(|error| failed(&error))
}

fn send(mut connection: TcpStream, time: Duration) {
    tack_io::realtime::leave();
    let block = vec![0x5a; WRITE];
    let start = Instant::now();
    let _bounded = connection.set_write_timeout(Some(PATIENCE));
    while start.elapsed() < time && connection.write_all(&block).is_ok() {}
}

/// Reads until enough was measured. What is still on its way then is lost with the connection.
fn receive(mut connection: TcpStream, plan: &Plan) -> std::io::Result<f64> {
    // A read that waited would wait for that much.
    connection.set_nonblocking(true)?;
    socket_options::set_low_water_mark(&connection, LOW_WATER)?;
    let mut buffer = vec![0; READ];
    let start = Instant::now();
    let (mut bytes, mut counted, mut last) = (0_u64, start, start);
    while start.elapsed() < plan.omit + plan.length {
        let read = match connection.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        last = Instant::now();
        if last.duration_since(start) < plan.omit {
            counted = last;
        } else {
            bytes += read as u64;
        }
        std::thread::sleep(PAUSE);
    }
    let seconds = last.duration_since(counted).as_secs_f64();
    if bytes == 0 || seconds <= 0.0 {
        return Err(std::io::Error::other("nothing was received"));
    }
    Ok(bytes as f64 * 8.0 / seconds)
}
