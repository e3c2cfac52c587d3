//! Who is let in, and to which targets; what is said of those who are not, and of secrets.

use std::net::TcpListener;

use super::{Service, Two, echo, target};
use crate::meeting::Side;
use crate::support::{Ended, finish};

#[test]
fn a_ticket_in_a_file_names_the_peer_and_one_over_standard_input_is_refused_where_that_is_carried()
{
    let target = target(echo).to_string();
    let (server, client) = (Side::new(), Side::new());
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--keep", "--no-code"];
    let mut service = Service::start(&server, &[&arguments[..], &["--target", &target]].concat());
    let line = service.line("tack1");
    let mut words = line.split_whitespace();
    let ticket = words.find(|word| word.starts_with("tack1")).unwrap();
    std::fs::write(client.path("ticket"), ticket).unwrap();
    let by_file = ["--ticket-file", "ticket"];
    let ended = client.run(&[&["connect", &target][..], &by_file].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut by_environment = client.command(&["connect", &target]);
    let ended = finish(by_environment.env("TACK_TICKET", ticket));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let spec = format!("0:{target}");
    for command in [
        &["forward", "-L", &spec][..],
        &["proxy", "--listen", "127.0.0.1:0"],
    ] {
        let mut service = Service::start(&client, &[command, &by_file].concat());
        service.line(" lead");
    }
    for (arguments, words) in [
        (&["connect", &target][..], "no peer: expected PEER"),
        (&["forward", "-L", &spec], "no peer: expected PEER"),
        (&["proxy"], "no peer: expected PEER"),
        (
            &["connect", "-", &target],
            "standard input, which is carried",
        ),
        (
            &["connect", "--ticket-fd", "0", &target],
            "which is carried",
        ),
    ] {
        let ended = client.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_port_that_may_not_be_listened_on_is_refused() {
    let two = Two::new(&["--remote-listen", "127.0.0.1:1-1024"]);
    for listen in ["127.0.0.1:2000", "127.0.0.1:0", "0.0.0.0:80"] {
        let spec = format!("{listen}:localhost:80");
        let ended = finish(&mut two.client.command(&["forward", "-R", &spec, "server:"]));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains("does not permit"), "{ended:?}");
        assert!(ended.stderr.contains("(its --remote-listen)"), "{ended:?}");
    }
}

fn refused(two: &Two, target: &str) -> String {
    let Ended { code, stderr, .. } = finish(&mut two.connect(target));
    assert_eq!(code, Some(3), "{target}: {stderr}");
    stderr
}

#[test]
fn refusals_say_why() {
    let open = target(echo);
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rule = format!("127.0.0.1:{}", closed.port());
    let two = Two::new(&[
        "--target",
        &rule,
        "--target",
        "*:*",
        "--target",
        "nowhere.invalid:80",
    ]);
    assert!(refused(&two, &closed.to_string()).contains("connection refused"));
    // Without a name server the message says so.
    let said = refused(&two, "nowhere.invalid:80");
    let is_said = |words| said.contains(words);
    assert!(
        is_said("no address of this name") || is_said("no answer about this name"),
        "{said}"
    );
    // Loopback is not among any hosts, in whatever way it is written.
    let port = open.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
        let said = refused(&two, &format!("{host}:{port}"));
        assert!(said.contains("does not permit"), "{host}: {said}");
    }
    // The serving side speaks of itself.
    let mut two = two;
    let line = two.service.line("127.0.0.1:");
    assert!(!line.contains("the other side"), "{line}");
    let line = two.service.line("not permitted");
    assert!(!line.contains("the other side"), "{line}");
    let ended = finish(&mut two.connect("nowhere"));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("is not a valid target"), "{ended:?}");
}

#[test]
fn strangers_and_peers_that_are_not_allowed_are_refused() {
    let target = target(echo).to_string();
    let two = Two::new(&["--target", &target]);
    let stranger = Side::new();
    let address = two.client.run(&["peers", "--json"]).stdout;
    let address = address
        .split('"')
        .find(|word| word.starts_with("127.0.0.1:"))
        .unwrap();
    stranger.run(&[
        "peers",
        "add",
        "server",
        &two.server.key(),
        "--address",
        address,
    ]);
    let ended = stranger.run(&["connect", "server:", &target]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    // A known peer, but not one of those that are served.
    let (server, friend) = (Side::new(), Side::new());
    server.run(&["peers", "add", "friend", &friend.key()]);
    server.run(&["peers", "add", "other", &stranger.key()]);
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--target",
        &target,
        "--allow",
        "friend",
    ];
    let mut service = Service::start(&server, &arguments);
    let line = service.line("serving tunnels at ");
    let address = line.split_whitespace().last().unwrap();
    for (side, expected) in [(&friend, Some(0)), (&stranger, Some(3))] {
        side.run(&[
            "peers",
            "add",
            "second",
            &server.key(),
            "--address",
            address,
        ]);
        let ended = side.run(&["connect", "second:", &target]);
        assert_eq!(ended.code, expected, "{ended:?}");
    }
    let unknown = server.run(&["serve", "--target", &target, "--allow", "nobody"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn a_ticket_lets_a_peer_in_that_is_known_from_then_on() {
    let target = target(echo).to_string();
    let (server, client) = (Side::new(), Side::new());
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--target",
        &target,
        "--invite",
        "--remember",
        "guest",
    ];
    let mut service = Service::start(&server, &arguments);
    let line = service.line("tack1");
    let ticket = line
        .split_whitespace()
        .find(|word| word.starts_with("tack1"))
        .unwrap();
    let ended = client.run(&["connect", ticket, &target, "--remember", "server"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = client.run(&["connect", "server:", &target]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let known = server.run(&["peers"]).stdout;
    assert!(known.contains("guest"), "{known}");
    // The ticket has served.
    let other = Side::new().run(&["connect", ticket, &target]);
    assert_eq!(other.code, Some(1), "{other:?}");
}

/// What runs on writes to a journal: a ticket, which may serve many, and a code are not for it.
#[test]
fn programs_that_run_on_name_the_peer_and_no_secret() {
    let target = target(echo).to_string();
    let server = Side::new();
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--keep"];
    arguments.extend(["--target", &target, "--remote-listen", "127.0.0.1:*"]);
    let mut service = Service::start(&server, &arguments);
    let line = service.line("--code");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "--code").unwrap();
    let (address, code) = (words[at - 1], words[at + 1]);
    let is_complete = words.last() == Some(&"HOST:PORT");
    let line = service.line("tack1");
    let mut words = line.split_whitespace();
    let ticket = words.find(|word| word.starts_with("tack1")).unwrap();
    let key = server.key();
    let short = [&key[..4], &key[4..8], &key[8..12], &key[12..16]].join("-");
    let spec = format!("0:{target}");
    let commands = [
        vec!["forward", "-L", &spec],
        vec!["forward", "-R", &spec],
        vec!["proxy", "--listen", "127.0.0.1:0"],
    ];
    let named = ["--remember", "server"];
    for (peer, options, expected) in [
        (ticket, &[][..], short.as_str()),
        (ticket, &named, "server:"),
        (address, &["--code", code], short.as_str()),
    ] {
        let commands = if peer == ticket {
            &commands[..]
        } else {
            &commands[..1]
        };
        for command in commands {
            let client = Side::new();
            let arguments = [&command[..], options, &[peer]].concat();
            let mut running = Service::start(&client, &arguments);
            let said = loop {
                let line = running.line("");
                assert!(!line.contains("tack1") && !line.contains(code), "{line}");
                if line.contains(" lead") {
                    break line;
                }
            };
            assert!(said.contains(expected), "{arguments:?}: {said}");
        }
    }
    assert!(
        is_complete,
        "the command with the code has a place for a target"
    );
}
