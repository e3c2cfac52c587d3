//! Tunnels over a path that goes away for a while: a cable between two network namespaces that is
//! pulled out and put in again.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::support::network::{Network, network};
use crate::support::{PATIENCE, finish};
use crate::tunnel::{Service, echo};

const HERE: usize = 0;
const THERE: usize = 1;

struct World {
    network: Network,
    scratch: tempfile::TempDir,
}

impl World {
    fn tack(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = self.network.tack(host);
        let state = self.scratch.path().join(format!("state-{host}"));
        command.args(arguments).env("TACK_STATE_DIR", state);
        command
    }

    /// What `open` opens on a host.
    fn on<T: Send + 'static>(&self, host: usize, open: impl FnOnce() -> T + Send + 'static) -> T {
        let namespace = File::open(self.network.path(host)).unwrap();
        let thread = std::thread::spawn(move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            open()
        });
        thread.join().unwrap()
    }

    /// Where a host says back what it hears.
    fn echo(&self, host: usize) -> SocketAddr {
        let listener = self.on(host, || TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                echo(stream);
            }
        });
        address
    }

    fn connect(&self, host: usize, address: SocketAddr) -> TcpStream {
        let stream = self.on(host, move || TcpStream::connect(address).unwrap());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Pulls the cable out, or puts it in again.
    fn cable(&self, state: &str) {
        let line = format!("link set veth0 {state}");
        self.network.host(HERE, &line).unwrap();
    }
}

fn talk(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"word")?;
    let mut heard = [0; 4];
    stream.read_exact(&mut heard)?;
    assert_eq!(&heard, b"word");
    Ok(())
}

/// The first address in a line.
fn address(line: &str) -> SocketAddr {
    let found = line.split_whitespace().find_map(|word| word.parse().ok());
    found.unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let machines = network(2, |network| {
        network.cable((HERE, &["10.82.1.1/24"]), (THERE, &["10.82.1.2/24"]))
    });
    let Some(mut network) = machines else {
        return;
    };
    network.end_after(PATIENCE);
    let scratch = tempfile::tempdir().unwrap();
    let world = World { network, scratch };
    let targets = [HERE, THERE].map(|host| world.echo(host));
    let key = |host| finish(&mut world.tack(host, &["id"])).stdout;
    let (here, there) = (key(HERE), key(THERE));
    finish(&mut world.tack(THERE, &["peers", "add", "client", here.trim()]));
    let known = ["server", there.trim(), "--address", "10.82.1.2:7777"];
    finish(&mut world.tack(HERE, &[&["peers", "add"][..], &known].concat()));
    // The shortest silence that may be asked for.
    let silence = ["--timeout", "3s"];
    let rule = targets[THERE].to_string();
    let rules = ["serve", "--target", &rule, "--remote-listen", "127.0.0.1:*"];
    let mut serving = Service::of(world.tack(THERE, &[&rules[..], &silence].concat()));
    serving.line("serving tunnels at ");
    let forward = |option: &str, to: SocketAddr| {
        let spec = format!("0:{to}");
        let arguments = ["forward", option, &spec, "server:"];
        let mut service = Service::of(world.tack(HERE, &[&arguments[..], &silence].concat()));
        let line = service.line(" leads to ");
        (service, address(&line))
    };
    let (_local, near) = forward("-L", targets[THERE]);
    let (mut remote, far) = forward("-R", targets[HERE]);
    let mut open = world.connect(HERE, near);
    talk(&mut open).unwrap();
    talk(&mut world.connect(THERE, far)).unwrap();

    // For less than the silence: nobody notices.
    world.cable("down");
    open.write_all(b"wo").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    world.cable("up");
    open.write_all(b"rd").unwrap();
    let mut heard = [0; 4];
    open.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"word");

    world.cable("down");
    remote.line("is lost; trying again");
    talk(&mut open).unwrap_err();
    world.cable("up");
    talk(&mut world.connect(HERE, near)).unwrap();
    let line = remote.line(" leads to ");
    talk(&mut world.connect(THERE, address(&line))).unwrap();
}
