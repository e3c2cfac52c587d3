//! Metrics of tunnels, of both sides.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};

use super::metrics::{parsed, scrape, values};
use crate::proxy::{socks, socks_request, wrapped};
use crate::support::PATIENCE;
use crate::tunnel::{Service, Two, echo, target};

/// Where a program with `--metrics` has them.
fn metrics_of(service: &Service) -> SocketAddr {
    let line = service
        .said
        .lines()
        .find(|line| line.contains("metrics at"));
    let url = line.unwrap().split_whitespace().last().unwrap();
    let address = url.trim_start_matches("http://");
    address.trim_end_matches("/metrics").parse().unwrap()
}

/// The metrics of tunnels with this name, by their label.
fn ask(address: SocketAddr, name: &str) -> HashMap<String, f64> {
    values(&parsed(&scrape(address).1), &format!("tack_tunnel_{name}"))
}

#[test]
fn both_sides_count_connections_refusals_bytes_and_datagrams() {
    let target = target(echo);
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let to = server.local_addr().unwrap();
    let rules = [target, to].map(|it| it.to_string());
    let options = [
        "--metrics",
        "0",
        "--target",
        &rules[0],
        "--target",
        &rules[1],
    ];
    let two = Two::new(&options);
    let arguments = [
        "proxy",
        "server:",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "0",
    ];
    let mut service = Service::start(&two.client, &arguments);
    let line = service.line(" lead to ");
    let proxy = line.split_whitespace().find_map(|word| word.parse().ok());
    let proxy: SocketAddr = proxy.unwrap();
    let (there, here) = (metrics_of(&two.service), metrics_of(&service));
    assert_eq!(ask(here, "connections")[""], 0.0);

    let (mut stream, code, _) = socks(proxy, &socks_request(1, target));
    assert_eq!(code, 0);
    stream.write_all(&[1; 5000]).unwrap();
    stream.read_exact(&mut [0; 5000]).unwrap();
    for side in [there, here] {
        assert_eq!(ask(side, "connections")[""], 1.0);
        assert_eq!(ask(side, "connections_opened_total")[""], 1.0);
        let bytes = ask(side, "carried_bytes_total");
        assert_eq!((bytes["to_peer"], bytes["from_peer"]), (5000.0, 5000.0));
        assert!(ask(side, "refused_total").is_empty());
    }
    let (_, code, _) = socks(proxy, &socks_request(1, ([127, 0, 0, 1], 9).into()));
    assert_eq!(code, 2);
    for side in [there, here] {
        assert_eq!(ask(side, "refused_total")["not_permitted"], 1.0);
        assert_eq!(ask(side, "connections_opened_total")[""], 1.0);
    }
    drop(stream);
    for side in [there, here] {
        let mut looks = 0;
        while ask(side, "connections")[""] > 0.0 {
            looks += 1;
            assert!(looks < 5000, "it stays open");
        }
    }

    let (_control, code, relay) = socks(proxy, &socks_request(3, ([0, 0, 0, 0], 0).into()));
    assert_eq!(code, 0);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    client.send_to(&wrapped(nowhere, b"no"), relay).unwrap();
    client.send_to(&wrapped(to, b"there"), relay).unwrap();
    let mut heard = [0; 100];
    let (_, exit) = server.recv_from(&mut heard).unwrap();
    server.send_to(b"back", exit).unwrap();
    client.recv_from(&mut heard).unwrap();
    for (side, sent, received) in [
        (here, "to_peer", "from_peer"),
        (there, "from_peer", "to_peer"),
    ] {
        let datagrams = ask(side, "datagrams_total");
        assert_eq!((datagrams[sent], datagrams[received]), (2.0, 1.0));
    }
    let dropped = ask(there, "datagrams_dropped_total");
    assert_eq!(dropped["not_permitted"], 1.0, "{dropped:?}");
    // No metric names a peer or a target.
    let text = scrape(there).1;
    assert!(
        !text.contains("client") && !text.contains("127.0.0.1"),
        "{text}"
    );
}
