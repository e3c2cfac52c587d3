//! `tack gateway`: clients that know nothing of it, the gateway that forwards their packets, and
//! the server behind its peer. In network namespaces, with nftables.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::carrier::has_tun;
use crate::exec::{FAR_V4, FAR_V6, World, came_by_tack, key_of};
use crate::support::network::network;
use crate::support::{Ended, PATIENCE, Running, finish, tack};
use crate::tunnel::Service;

/// The machines.
pub(crate) const CLIENT: usize = 0;
pub(crate) const GATEWAY: usize = 1;
pub(crate) const SERVER: usize = 2;

/// Three machines in a row; the gateway itself has no route to what is far.
pub(crate) fn three() -> Option<World> {
    let network = network(3, |network| {
        network.cable(
            (CLIENT, &["10.5.1.2/24", "fd51::2/64"]),
            (GATEWAY, &["10.5.1.1/24", "fd51::1/64"]),
        )?;
        network.cable(
            (GATEWAY, &["10.5.2.1/24", "fd52::1/64"]),
            (SERVER, &["10.5.2.2/24", "fd52::2/64"]),
        )?;
        network.host(CLIENT, "route add default via 10.5.1.1")?;
        network.host(CLIENT, "-6 route add default via fd51::1")?;
        // Connections from outside reach the clients by ordinary forwarding.
        network.host(SERVER, "route add 10.5.1.0/24 via 10.5.2.1")?;
        network.host(SERVER, &format!("addr add {FAR_V4}/32 dev lo"))?;
        network.host(SERVER, &format!("addr add {FAR_V6}/128 dev lo nodad"))
    })?;
    match World::new(network, &["nft", "python3", "curl"]) {
        Ok(mut world) => {
            world.network.end_after(PATIENCE);
            Some(world)
        }
        Err(why) => {
            tack_skip::skipped(why);
            None
        }
    }
}

pub(crate) fn on(world: &World, host: usize, line: &str) -> Ended {
    finish(&mut world.shell(host, line))
}

fn tables(world: &World) -> String {
    on(world, GATEWAY, "nft list tables; ip rule; ip -6 rule").stdout
}

#[test]
fn clients_reach_what_the_peer_reaches_and_rules_go_with_the_gateway() {
    let Some(world) = three() else { return };
    let tack = PathBuf::from(tack().get_program());
    let tack = tack.display();
    let key = key_of(&on(&world, GATEWAY, &format!("{tack} id")));
    let (_service, server_key) = world.serve(SERVER, "10.5.2.2:7777", &key);
    let add = format!("{tack} peers add server {server_key} --address 10.5.2.2:7777");
    assert_eq!(on(&world, GATEWAY, &add).code, Some(0));
    let _far = world.far_server(SERVER);
    let gateway = |options: &str| {
        let line = format!("exec {tack} gateway server: --interface veth0 {options}");
        let mut gateway = Service::of(world.shell(GATEWAY, &line));
        gateway.line("connections of clients behind veth0 lead to server:");
        gateway
    };
    let fetch = "curl -sS -m 60 http://10.9.9.9/file | cmp - www/file";
    let clean = tables(&world);

    let first = gateway("--install");
    assert!(tables(&world).contains("tack_gateway_7281"));
    let talked = on(
        &world,
        CLIENT,
        &format!("python3 client.py {FAR_V4} {FAR_V6} - split"),
    );
    assert_eq!(talked.code, Some(0), "{talked:?}");
    // The server sees its own address, not the client's.
    assert_eq!(talked.stdout, "source 10.9.9.9\ndone\n");
    let fetched = on(&world, CLIENT, fetch);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    // What is for the gateway itself is not carried.
    let own = on(&world, CLIENT, "curl -sS -m 60 http://10.5.1.1/file");
    assert_eq!(own.code, Some(7), "{own:?}");

    // A server behind the interface still answers who connects to it from outside.
    let forward = on(&world, GATEWAY, "echo 1 > /proc/sys/net/ipv4/ip_forward");
    assert_eq!(forward.code, Some(0), "{forward:?}");
    let listen = "import socket\n\
                  listener = socket.create_server((\"10.5.1.2\", 99))\n\
                  print(\"ready\", flush=True)\n\
                  one, _ = listener.accept(); one.sendall(one.recv(9)); one.recv(1)\n";
    let mut listening = world.shell(CLIENT, "exec python3 -c \"$LISTEN\"");
    let mut listening = Running::start(listening.env("LISTEN", listen));
    assert_eq!(listening.text_line(), "ready\n");
    let ask = "import socket\n\
               one = socket.create_connection((\"10.5.1.2\", 99), 10)\n\
               one.sendall(b\"x\"); print(one.recv(9))\n";
    let mut asking = world.shell(SERVER, "exec python3 -c \"$ASK\"");
    let asked = finish(asking.env("ASK", ask));
    assert_eq!(asked.stdout, "b'x'\n", "{asked:?}");
    assert_eq!(listening.status().code(), Some(0));

    // Killed, it takes the table along; what stays behind concerns no packet, and the next one
    // puts up with it.
    drop(first);
    while tables(&world).contains("tack_gateway") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut second = gateway("--install --max-per-client 2");
    // The reset may come before the third one knows that it is connected.
    let crowd = "import socket\n\
                 connect = lambda: socket.create_connection((\"10.9.9.9\", 7), 60)\n\
                 one, two = connect(), connect()\n\
                 try:\n    connect().recv(1); print(\"ended\")\n\
                 except ConnectionResetError:\n    print(\"reset\")\n\
                 one.sendall(b\"x\"); one.shutdown(1); print(one.recv(9))\n";
    let mut crowding = world.shell(CLIENT, "exec python3 -c \"$CROWD\"");
    let crowded = finish(crowding.env("CROWD", crowd));
    assert_eq!(crowded.stdout, "reset\nb'x'\n", "{crowded:?}");
    let pid = rustix::process::Pid::from_child(&second.child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(second.child.wait().unwrap().code(), Some(143));
    while tables(&world).contains("tack_gateway") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(tables(&world), clean);

    // The same rules, installed by hand, and again: by a shell that reads them from a pipe.
    let _third = gateway("");
    let print = format!("{tack} gateway --interface veth0 --print-rules");
    let install = || {
        let installed = on(&world, GATEWAY, &format!("{print} | sh"));
        assert_eq!((installed.code, &*installed.stderr), (Some(0), ""));
        let list = "nft list ruleset; ip rule; ip -6 rule; ip route show table 7281";
        on(&world, GATEWAY, list).stdout
    };
    let once = install();
    assert_eq!(once, install());
    let fetched = on(&world, CLIENT, fetch);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    came_by_tack(&world, SERVER);
    // It stops where a command fails.
    let failing = format!("{{ echo 'ip() {{ return 7; }}'; {print}; }} | sh");
    assert_eq!(on(&world, GATEWAY, &failing).code, Some(7));
}

/// Where the packets of two devices go: the devices' addresses without the last number and with the
/// length of the prefix, the machines between them, and what lets these forward.
struct Devices {
    networks: [(&'static str, u8); 2],
    machines: [&'static str; 2],
    forwards: &'static str,
}

const DEVICES: [Devices; 2] = [
    Devices {
        networks: [("10.77.1.", 24), ("10.77.2.", 24)],
        machines: ["10.5.2.1", "10.5.2.2"],
        forwards: "/proc/sys/net/ipv4/ip_forward",
    },
    Devices {
        networks: [("fd77:1::", 64), ("fd77:2::", 64)],
        machines: ["fd52::1", "fd52::2"],
        forwards: "/proc/sys/net/ipv6/conf/all/forwarding",
    },
];

/// With `--carrier tun` the gateway's stack is a host for which the machine forwards.
#[test]
fn a_gateway_behind_a_device_carries_connections_to_a_server_behind_one() {
    if !has_tun() {
        return;
    }
    for Devices {
        networks: [(here, prefix), (there, _)],
        machines,
        forwards,
    } in DEVICES
    {
        let Some(world) = three() else { return };
        let tack = PathBuf::from(tack().get_program());
        let tack = tack.display();
        let ok = |host: usize, line: &str| {
            let ended = on(&world, host, line);
            assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
            ended
        };
        for (host, network, next) in [(GATEWAY, there, machines[1]), (SERVER, here, machines[0])] {
            let route = format!("ip route add {network}0/{prefix} via {next}");
            ok(host, &format!("echo 1 > {forwards}; {route}"));
        }
        let key = |host: usize| key_of(&ok(host, &format!("{tack} id")));
        let add = format!("{tack} peers add client {}", key(GATEWAY));
        ok(SERVER, &add);
        let add = format!("{tack} peers add server {}", key(SERVER));
        let address = std::net::SocketAddr::new(format!("{there}2").parse().unwrap(), 7777);
        ok(GATEWAY, &format!("{add} --address {address}"));
        let serve = format!(
            "exec {tack} serve --target \"{FAR_V4}:*\" --carrier tun --tun-address {there}2/{prefix}"
        );
        let mut service = Service::of(world.shell(SERVER, &serve));
        service.line("serving tunnels at ");
        let _far = world.far_server(SERVER);
        let gateway = format!(
            "exec {tack} gateway server: --interface veth0 --install \
             --carrier tun --tun-address {here}2/{prefix}"
        );
        let mut gateway = Service::of(world.shell(GATEWAY, &gateway));
        gateway.line("connections of clients behind veth0 lead to server:");
        // The gateway's machine has no route to what is far.
        let fetch = format!("curl -sS -m 60 http://{FAR_V4}/file | cmp - www/file");
        ok(CLIENT, &fetch);
    }
}

/// With `--block` clients whose connections no gateway takes go nowhere.
#[test]
fn blocked_clients_do_not_go_out_directly() {
    let Some(world) = three() else { return };
    let tack = PathBuf::from(tack().get_program());
    let tack = tack.display();
    // The gateway forwards, and knows the way.
    let forward = on(
        &world,
        GATEWAY,
        &format!("echo 1 > /proc/sys/net/ipv4/ip_forward; ip route add {FAR_V4} via 10.5.2.2"),
    );
    assert_eq!(forward.code, Some(0), "{forward:?}");
    let key = key_of(&on(&world, GATEWAY, &format!("{tack} id")));
    let (_service, server_key) = world.serve(SERVER, "10.5.2.2:7777", &key);
    let add = format!("{tack} peers add server {server_key} --address 10.5.2.2:7777");
    assert_eq!(on(&world, GATEWAY, &add).code, Some(0));
    let _far = world.far_server(SERVER);
    let fetch = |seconds: &str| {
        let line = format!("curl -sS -m {seconds} http://{FAR_V4}/file | cmp - www/file");
        on(&world, CLIENT, &line).code == Some(0)
    };
    assert!(fetch("60"), "directly");
    let listed = |what: &str| {
        let tables = tables(&world);
        let mut lines = tables.lines();
        lines.any(|line| line.ends_with(what))
    };
    let options = "--interface veth0 --install --block";

    // A peer that is not there: it blocks before it asks.
    let strange = key_of(&on(
        &world,
        GATEWAY,
        &format!("TACK_STATE_DIR=strange {tack} id"),
    ));
    let nobody = format!("{tack} peers add nobody {strange} --address 127.0.0.1:9");
    assert_eq!(on(&world, GATEWAY, &nobody).code, Some(0));
    let failed = on(
        &world,
        GATEWAY,
        &format!("{tack} gateway nobody: {options}"),
    );
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert!(
        failed.stderr.contains("the clients stay blocked"),
        "{failed:?}"
    );
    assert!(listed("tack_gateway_7281_block") && !fetch("0.3"));

    let gateway = || {
        let line = format!("exec {tack} gateway server: {options}");
        let mut gateway = Service::of(world.shell(GATEWAY, &line));
        gateway.line("connections of clients behind veth0 lead to server:");
        gateway
    };
    let ended = || {
        while listed("tack_gateway_7281") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        listed("tack_gateway_7281_block")
    };
    // Killed, and asked to end.
    let first = gateway();
    assert!(fetch("60"), "through the gateway");
    drop(first);
    assert!(ended() && !fetch("0.3"));
    let mut second = gateway();
    assert!(fetch("60"), "through the next one");
    let pid = rustix::process::Pid::from_child(&second.child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let said = second.line("the clients stay blocked; `");
    assert_eq!(second.child.wait().unwrap().code(), Some(143));
    assert!(ended() && !fetch("0.3"));

    // What the gateway said lets them out; what was printed blocks them again.
    let command = said.split('`').nth(1).unwrap();
    assert_eq!(on(&world, GATEWAY, command).code, Some(0));
    assert!(fetch("60"), "directly again");
    let install = format!("{tack} gateway --interface veth0 --print-rules --block | sh");
    assert_eq!(on(&world, GATEWAY, &install).code, Some(0));
    assert!(!fetch("0.3"));
    let alone = on(
        &world,
        GATEWAY,
        &format!("{tack} gateway server: --interface veth0 --block"),
    );
    assert_eq!(alone.code, Some(2), "{alone:?}");
}
