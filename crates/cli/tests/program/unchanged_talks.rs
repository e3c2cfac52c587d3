//! The random conversations of `tunnel_talks.rs` held by programs that know nothing of tunnels:
//! inside of `tack exec`, and behind a `tack gateway`. Both ends have to hear what they hear over a
//! direct connection. In network namespaces.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::exec::{self, FAR_V4, FAR_V6, World, key_of};
use crate::gateway;
use crate::support::network::within;
use crate::support::{Running, finish, is_long, tack};
use crate::tunnel::Service;
use crate::tunnel_talks::{
    self, TALKS, Talk, Told, Way, compare, second_side, talk_over, talk_over_cut,
};

/// The second sides, which are far: one for each family.
fn second_sides(server: &Path) -> [(SocketAddr, Mutex<Told>); 2] {
    let far = [FAR_V4, FAR_V6].map(|far| far.parse::<IpAddr>().unwrap());
    let sides = within(server, || far.map(second_side));
    sides.map(|(target, told)| (target, Mutex::new(told)))
}

/// Has conversations from a place, and compares them with those that are held where the second
/// sides are. The path of the tunnel is cut meanwhile.
fn compare_from(place: &Path, server: &Path, path: &tunnel_talks::Path, what: &str) {
    let sides = second_sides(server);
    for round in 0..if is_long() { 20 } else { 1 } {
        let seeds = (0..TALKS).map(|number| 1_000 + round * TALKS + number);
        let talks: Vec<_> = seeds.map(Talk::new).collect();
        let over = |namespace: &Path, (target, told): &(SocketAddr, Mutex<Told>)| {
            within(namespace, || {
                let told = told.lock().unwrap();
                talk_over(Way::Straight(*target), *target, &talks, &told)
            })
        };
        let expected = over(server, &sides[0]);
        for (number, side) in sides.iter().enumerate() {
            let moment = Duration::from_millis((round * 7 + 11 * number as u64) % 50);
            let time = Duration::from_millis([60, 150][number]);
            let heard = talk_over_cut(path, (moment, time), || over(place, side));
            compare(&heard, &expected, &talks, &format!("{what}, {}", side.0));
        }
    }
}

#[test]
fn conversations_inside_of_exec_are_those_over_a_direct_connection() {
    let Some(world) = exec::two() else { return };
    let [client, server] = [exec::CLIENT, exec::SERVER].map(|host| world.network.namespace(host));
    let key = key_of(&world.user_ok("../tack id"));
    let (_service, server_key) = world.serve(exec::SERVER, "10.5.0.2:7777", &key);
    let path = within(&client, || tunnel_talks::Path::new("10.5.0.2:7777"));
    let at = path.address;
    world.user_ok(&format!(
        "../tack peers add server {server_key} --address {at}"
    ));
    // A command that waits, in whose network we are guests.
    let line = "exec ../tack exec server: -- sh -c \"echo \\$\\$; exec sleep 1000\"";
    let mut waiting = Running::start(&mut world.user(line));
    let pid: u32 = waiting.text_line().trim().parse().unwrap();
    let inside = PathBuf::from(format!("/proc/{pid}/ns/net"));
    compare_from(&inside, &server, &path, "exec");
}

#[test]
fn conversations_behind_a_gateway_are_those_over_a_direct_connection() {
    let Some(world) = gateway::three() else {
        return;
    };
    let hosts = [gateway::CLIENT, gateway::GATEWAY, gateway::SERVER];
    let [client, router, server] = hosts.map(|host| world.network.namespace(host));
    let path = within(&router, || tunnel_talks::Path::new("10.5.2.2:7777"));
    let (_service, _gateway) = gateway_over(&world, path.address);
    compare_from(&client, &server, &path, "gateway");
}

/// A gateway with its peer, which it finds at an address of its own.
fn gateway_over(world: &World, at: SocketAddr) -> (Service, Service) {
    let program = PathBuf::from(tack().get_program());
    let tack = program.display();
    let on = |line: String| finish(&mut world.shell(gateway::GATEWAY, &line));
    let key = key_of(&on(format!("{tack} id")));
    let (service, server_key) = world.serve(gateway::SERVER, "10.5.2.2:7777", &key);
    let added = on(format!(
        "{tack} peers add server {server_key} --address {at}"
    ));
    assert_eq!(added.code, Some(0), "{added:?}");
    let line = format!("exec {tack} gateway server: --interface veth0 --install");
    let mut gateway = Service::of(world.shell(gateway::GATEWAY, &line));
    gateway.line("connections of clients behind veth0 lead to server:");
    (service, gateway)
}
