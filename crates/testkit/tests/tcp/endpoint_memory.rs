//! Memory: what a connection gives back once it does not need it, and what happens at the
//! endpoint's limit.

use tack_tcp::{CloseReason, Config, ConnectError, Endpoint, EndpointConfig};
use tack_testkit::{Model, Pair, Side};
use tack_wire::{Flags, SeqNum};

use crate::endpoints::{NOW, arrive, drain, header, open, peer};
use crate::settings::{ms, plain, secs};

fn with_memory(memory: usize) -> Endpoint {
    Endpoint::new(EndpointConfig {
        memory,
        ..EndpointConfig::new([7; 16])
    })
}

fn lossy() -> Model {
    Model {
        loss: 0.02,
        delay: ms(25),
        ..Model::default()
    }
}

fn acknowledging(ack: &str) -> Config {
    Config {
        ack: ack.parse().expect("a policy"),
        ..Config::default()
    }
}

/// Twenty transfers over a lossy path through a receiver that may hold little more than the
/// connections themselves take: what waits above holes is thrown away, though it was reported (RFC
/// 2018 §8), and comes again. All of them end.
#[test]
fn a_receiver_keeps_to_its_limit_and_senders_cope() {
    const LIMIT: usize = 512 << 10;
    for ack in ["tack", "delayed:2"] {
        let config = acknowledging(ack);
        let mut pair = Pair::new(5, lossy(), lossy());
        *pair.endpoint(Side::Server) = with_memory(LIMIT);
        pair.listen(&config);
        let ids: Vec<_> = (0..20).map(|_| pair.connect(&config)).collect();
        for id in &ids {
            pair.send_on(Side::Client, *id, 400_000);
            pair.finish_on(Side::Client, *id);
        }
        let mut most = 0;
        let done = pair.run_until(secs(120), |pair| {
            most = most.max(pair.endpoint(Side::Server).memory());
            pair.apps(Side::Server).filter(|app| app.ended).count() == ids.len()
        });
        let read: u64 = pair.apps(Side::Server).map(|app| app.read).sum();
        assert!(done && read == 20 * 400_000, "{ack}: {read}");
        let accepted: Vec<_> = pair.apps(Side::Server).map(|app| app.id).collect();
        let now = pair.now();
        let server = pair.endpoint(Side::Server);
        let pruned: u64 = accepted
            .iter()
            .filter_map(|id| server.get(*id))
            .map(|connection| connection.stats(now).pruned)
            .sum();
        println!("{ack}: at most {most} bytes, pruned {pruned} times, {now}");
        assert!(pruned > 0, "{ack}");
        // What arrives between two looks at it comes on top.
        assert!(most < LIMIT + (128 << 10), "{ack}: {most}");
    }
}

/// An application that does not read fills the endpoint: no more connections, in or out, until it
/// does.
#[test]
fn a_full_endpoint_refuses_connections() {
    let mut endpoint = with_memory(60_000);
    endpoint.listen(80, plain(), 10).expect("the port is free");
    let (id, next) = open(&mut endpoint, NOW, peer(1), 9);
    let mut seq = 101;
    while endpoint.memory() < 60_000 {
        let data = header(9, Flags::ACK, seq, next.0);
        arrive(&mut endpoint, NOW, peer(1), data, &[1; 1000]);
        seq += 1000;
        assert!(seq < 60_000, "it takes room");
    }
    let syn = || header(10, Flags::SYN, 100, 0);
    assert!(arrive(&mut endpoint, NOW, peer(1), syn(), &[]).is_empty());
    assert_eq!(endpoint.stats().syns_dropped, 1);
    assert_eq!(
        endpoint.connect(NOW, peer(1), 80, 0, &plain()),
        Err(ConnectError::Exhausted)
    );
    // The window does not open again beyond what is left, and what was promised stays.
    let connection = endpoint.get_mut(id).expect("it lives");
    while connection.read(NOW, &mut [0; 4096]).is_ok() {}
    drain(&mut endpoint, NOW + secs(1));
    endpoint.handle_timeout(NOW + secs(2));
    drain(&mut endpoint, NOW + secs(2));
    assert!(endpoint.memory() < 50_000, "{}", endpoint.memory());
    assert_eq!(
        arrive(&mut endpoint, NOW + secs(2), peer(1), syn(), &[]).len(),
        1
    );
    assert!(endpoint.connect(NOW, peer(1), 80, 0, &plain()).is_ok());
}

/// From three quarters of the limit on buffers do not grow; a connection goes on with what it has.
#[test]
fn buffers_do_not_grow_when_memory_is_scarce() {
    let buffer = |memory| {
        let mut endpoint = with_memory(memory);
        endpoint.listen(80, plain(), 10).expect("the port is free");
        // Ten applications that do not read.
        for port in 1..=10 {
            let (_, next) = open(&mut endpoint, NOW, peer(1), port);
            for seq in (101..60_101).step_by(1000) {
                let data = header(port, Flags::ACK, seq, next.0);
                arrive(&mut endpoint, NOW, peer(1), data, &[1; 1000]);
            }
        }
        // One that does, 60 kB each 2 ms.
        let (id, next) = open(&mut endpoint, NOW, peer(1), 11);
        let mut now = NOW;
        for seq in (101..1_200_101).step_by(1000) {
            if seq % 60_000 == 101 {
                now += ms(2);
            }
            let data = header(11, Flags::ACK, seq, next.0);
            arrive(&mut endpoint, now, peer(1), data, &[1; 1000]);
            let connection = endpoint.get_mut(id).expect("it lives");
            assert_eq!(connection.read(now, &mut [0; 4096]), Ok(1000));
        }
        let connection = endpoint.get(id).expect("it lives");
        connection.stats(now).receive_buffer
    };
    assert!(buffer(1 << 30) > 100_000);
    assert_eq!(buffer(900_000), 64 << 10);
}

/// Buffers and logs that grew go back a second after the last segment, on both sides; the
/// connection then goes on as before. The buffer of a receiver that reads at once never grew: its
/// 4 KiB are not worth a timer.
#[test]
fn an_idle_connection_gives_its_memory_back() {
    let path = || Model {
        delay: ms(25),
        ..Model::default()
    };
    for ack in ["tack", "delayed:2"] {
        let mut pair = Pair::open(5, &acknowledging(ack), path(), path());
        pair.establish(secs(1));
        let idle = [Side::Client, Side::Server].map(|side| pair.endpoint(side).memory());
        for round in 1..=2 {
            pair.send(Side::Client, 10_000_000);
            let mut most = 0;
            assert!(pair.run_until(secs(60), |pair| {
                most = most.max(pair.endpoint(Side::Client).memory());
                pair.app(Side::Server).read == round * 10_000_000
            }));
            assert!(most > 1 << 20, "{ack}: {most}");
            pair.run_for(secs(3));
            for (side, idle) in [Side::Client, Side::Server].into_iter().zip(idle) {
                let memory = pair.endpoint(side).memory();
                let kept = if side == Side::Server { 4 << 10 } else { 0 };
                let most = idle + kept + 1024;
                assert!(memory <= most, "{ack} {side:?}: {memory}, {idle}");
            }
        }
    }
}

/// A stream that has ended needs no buffer: neither the receiver's, read to the end, nor the
/// sender's, acknowledged to the end.
#[test]
fn ended_streams_hold_nothing() {
    let path = || Model {
        delay: ms(25),
        ..Model::default()
    };
    let mut pair = Pair::open(5, &Config::default(), path(), path());
    pair.establish(secs(1));
    pair.send(Side::Client, 10_000_000);
    pair.finish(Side::Client);
    assert!(pair.run_until(secs(60), |pair| pair.app(Side::Server).ended));
    pair.run_for(ms(200));
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.connection(side).buffer_memory(), 0, "{side:?}");
        let memory = pair.connection(side).memory();
        assert!(memory < 16 << 10, "{side:?}: {memory}");
    }
}

/// Peers take some data, close their windows and only answer probes from then on, until the queues
/// for them use up the endpoint's memory. After a minute of that they go, as many as must: others
/// are let in. Where memory is left they stay for good (RFC 9293 MUST-37).
#[test]
fn peers_with_closed_windows_do_not_keep_others_out() {
    for (limit, stay) in [(8 << 20, false), (64 << 20, true)] {
        let mut endpoint = with_memory(limit);
        endpoint.listen(80, plain(), 100).expect("free");
        let mut connections = Vec::new();
        for port in 1..=40 {
            if endpoint.memory() >= limit {
                break;
            }
            let (id, next) = open(&mut endpoint, NOW, peer(1), port);
            while let Some(connection) = endpoint.get_mut(id)
                && connection.write(NOW, &[0; 65_536]).unwrap_or(0) > 0
            {
                drain(&mut endpoint, NOW);
            }
            connections.push((port, id, next));
        }
        assert_eq!(endpoint.memory() < limit, stay);
        let mut now = NOW;
        // The first timeouts and probes come soon, the last ones each minute.
        for _ in 0..20 {
            now += secs(30);
            endpoint.handle_timeout(now);
            drain(&mut endpoint, now);
            for (port, id, next) in &connections {
                let Some(connection) = endpoint.get(*id) else {
                    continue;
                };
                let stats = connection.stats(now);
                let sent = (stats.data_bytes - stats.retransmitted_bytes) as u32;
                let mut answer = header(*port, Flags::ACK, 101, 0);
                answer.ack = SeqNum(next.0.wrapping_add(sent));
                answer.window = 0;
                arrive(&mut endpoint, now, peer(1), answer, &[]);
            }
        }
        let left = |endpoint: &Endpoint| {
            let lives = |id| {
                endpoint
                    .get(id)
                    .is_some_and(|one| one.close_reason().is_none())
            };
            connections.iter().filter(|(_, id, _)| lives(*id)).count()
        };
        if stay {
            assert_eq!(left(&endpoint), connections.len());
        } else {
            // No more of them than there had to be.
            let left = left(&endpoint);
            assert!(
                left + 5 > connections.len(),
                "{left} of {}",
                connections.len()
            );
            let reasons = connections.iter().filter_map(|(_, id, _)| {
                let connection = endpoint.get(*id)?;
                connection.close_reason()
            });
            assert!(reasons.into_iter().all(|why| why == CloseReason::NoMemory));
        }
        let before = endpoint.stats().syns_dropped;
        arrive(
            &mut endpoint,
            now,
            peer(2),
            header(1_000, Flags::SYN, 5, 0),
            &[],
        );
        assert_eq!(endpoint.stats().syns_dropped, before, "{limit}");
    }
}
