//! Tunnels: connections of other programs over `tack serve`, with what may happen to them. What all
//! subjects need is here.

mod access;
mod ports;
mod standard_streams;

use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use crate::meeting::Side;
use crate::support::PATIENCE;

/// A program that runs until the test ends, and what it says.
pub(crate) struct Service {
    pub(crate) child: Child,
    errors: BufReader<std::process::ChildStderr>,
    /// What it has said so far, as far as somebody waited for it.
    pub(crate) said: String,
}

impl Service {
    pub(crate) fn start(side: &Side, arguments: &[&str]) -> Self {
        Self::of(side.command(arguments))
    }

    pub(crate) fn of(mut command: std::process::Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Self::running(command.spawn().unwrap())
    }

    /// Of a program that runs, and whose standard error is a pipe.
    fn running(mut child: Child) -> Self {
        let errors = BufReader::new(child.stderr.take().unwrap());
        let said = String::new();
        Self {
            child,
            errors,
            said,
        }
    }

    /// What it says until it ends, which somebody has caused.
    pub(crate) fn rest(&mut self, said: &mut String) {
        self.errors.read_to_string(said).unwrap();
    }

    /// The next line that contains `words`.
    pub(crate) fn line(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let len = self.errors.read_line(&mut line).unwrap();
            self.said.push_str(&line);
            assert!(len > 0, "it ended without saying {words:?}: {}", self.said);
            if line.contains(words) {
                return line;
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two machines that know each other; one serves.
pub(crate) struct Two {
    pub(crate) server: Side,
    pub(crate) client: Side,
    pub(crate) service: Service,
    /// Where the server listens.
    pub(crate) address: String,
}

impl Two {
    pub(crate) fn new(options: &[&str]) -> Self {
        let (server, client) = (Side::new(), Side::new());
        server.run(&["peers", "add", "client", &client.key()]);
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--verbose"];
        arguments.extend(options);
        let mut service = Service::start(&server, &arguments);
        let line = service.line("serving tunnels at ");
        let address = line.split_whitespace().last().unwrap().to_owned();
        client.run(&[
            "peers",
            "add",
            "server",
            &server.key(),
            "--address",
            &address,
        ]);
        Self {
            server,
            client,
            service,
            address,
        }
    }

    fn connect(&self, target: &str) -> std::process::Command {
        self.client.command(&["connect", "server:", target])
    }

    /// A `tack forward`, and the address that leads on.
    pub(crate) fn forward(&self, option: &str, spec: &str) -> (Service, SocketAddr) {
        let mut service = Service::start(&self.client, &["forward", option, spec, "server:"]);
        let line = service.line(" leads to ");
        let mut words = line.split_whitespace();
        let address = words.find_map(|word| word.parse().ok());
        (service, address.unwrap_or_else(|| panic!("{line}")))
    }
}

/// Serves one connection after the other with `talk`.
pub(crate) fn target(talk: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            talk(stream);
        }
    });
    address
}

/// Says back what it hears, and ends when the other side has ended.
pub(crate) fn echo(mut stream: TcpStream) {
    let _: JoinHandle<()> = std::thread::spawn(move || {
        let mut reading = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut reading, &mut stream);
        let _ = stream.shutdown(Shutdown::Write);
    });
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub(crate) fn noise(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Ends a connection by a reset.
pub(crate) fn socket_reset(stream: TcpStream) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    stream.set_nonblocking(true).unwrap();
    runtime.block_on(async {
        tokio::net::TcpStream::from_std(stream)
            .unwrap()
            .set_zero_linger()
            .unwrap();
    });
}
