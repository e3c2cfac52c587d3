//! The program as a whole: help, version, completions, and what it refuses.

use crate::support::{Running, finish, tack};

/// Help is part of the interface: a change of it is seen in the snapshot.
#[test]
fn help_texts() {
    let mut all = String::new();
    for arguments in [
        &["--help"][..],
        &["send", "--help"],
        &["recv", "--help"],
        &["id", "--help"],
        &["peers", "--help"],
        &["perf", "--help"],
        &["serve", "--help"],
        &["connect", "--help"],
        &["forward", "--help"],
        &["proxy", "--help"],
        &["exec", "--help"],
        &["gateway", "--help"],
        &["sim", "--help"],
        &["sweep", "--help"],
        &["sweep", "report", "--help"],
        &["demo", "--help"],
        &["emulate", "--help"],
        &["lab", "--help"],
        &["lab", "run", "--help"],
        &["lab", "report", "--help"],
        &["lab", "check", "--help"],
        &["-h"],
    ] {
        let ended = finish(tack().args(arguments).env("COLUMNS", "100"));
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
        all.push_str(&format!(
            "$ tack {}\n{}\n",
            arguments.join(" "),
            ended.stdout
        ));
    }
    insta::assert_snapshot!(all);
}

/// One page for the program and one for each command, which name their options.
#[test]
fn manual_pages() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man");
    let ended = finish(tack().arg("man").arg("--out").arg(&out));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    for (page, option) in [
        ("tack.1", "tack\\-send(1)"),
        ("tack-recv.1", "\\-\\-overwrite"),
        ("tack-lab-run.1", "\\-\\-quick"),
    ] {
        let text = std::fs::read_to_string(out.join(page)).unwrap();
        assert!(text.contains(".TH "), "{page}");
        assert!(text.contains(option), "{page} does not name {option}");
    }
}

#[test]
fn version_and_completions() {
    let ended = finish(tack().arg("--version"));
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), concat!("tack ", env!("CARGO_PKG_VERSION"), "\n"))
    );
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = finish(tack().args(["completions", shell]));
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.contains("overwrite"), "{shell}");
    }
    let mut running = Running::start(tack().args(["completions", "bash"]));
    running.close_stdout();
    let ended = running.wait();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "a closed pipe is not an error"
    );
}

#[test]
fn insecure_listens_everywhere() {
    let scratch = tempfile::tempdir().unwrap();
    let mut running = Running::start(
        tack()
            .args([
                "recv",
                "--listen",
                "0.0.0.0:0",
                "--insecure",
                "--once",
                "--json",
                "--dir",
            ])
            .arg(scratch.path()),
    );
    let address = running.line()["address"]
        .as_str()
        .unwrap()
        .replace("0.0.0.0", "127.0.0.1");
    let sent = finish(tack().args([
        "send",
        "--insecure",
        env!("CARGO_MANIFEST_DIR"),
        "--name",
        "here",
        &address,
    ]));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let ended = running.wait();
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("everybody who reaches this port"),
        "{ended:?}"
    );
    assert!(scratch.path().join("here/Cargo.toml").exists());
}

#[test]
fn wrong_usage_has_code_2_and_names_what_is_right() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, complaint) in [
        (&[][..], "Usage"),
        (&["teleport"], "unrecognized subcommand"),
        (&["send"], "PATH"),
        (&["send", "laptop:"], "expected a path before laptop:"),
        (&["send", file, "a/b"], "not a valid address"),
        (&["send", file, "tack1abc"], "copy all of it"),
        (
            &["send", file, "7-guitarst-orca"],
            "did you mean guitarist?",
        ),
        (
            &["send", file, "nobody:"],
            "called nobody:; `tack peers` lists them",
        ),
        (
            &["send", file, "--insecure"],
            "takes the receiver's address",
        ),
        (
            &["send", file, "--insecure", "7-guitarist-orca"],
            "takes an address",
        ),
        (&["recv", "7-orca-guitarist"], "wrong order"),
        (&["send", "-", "127.0.0.1"], "--name"),
        (&["send", "/", "127.0.0.1"], "--name"),
        (&["send", "--name", "a/b", file, "127.0.0.1"], "'/'"),
        (&["send", "--name", "x", file, "-", "127.0.0.1"], "one PATH"),
        (&["send", file, file, "127.0.0.1"], "same name"),
        (
            &["send", "/dev/null", "127.0.0.1"],
            "neither file nor directory",
        ),
        (
            &["send", "--congestion", "warp", file, "127.0.0.1"],
            "new_reno, cubic, bbr",
        ),
        (&["send", "--ack", "never", file, "127.0.0.1"], "delayed:L"),
        (&["recv", "--timeout", "1s"], "at least 3s"),
        (
            &["recv", "--dir", file],
            "cannot store files in this directory",
        ),
        (&["recv", "--max-transfers", "0"], "1..=1024"),
    ] {
        let ended = finish(tack().args(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(
            ended.stderr.contains(complaint),
            "{arguments:?}: {}",
            ended.stderr
        );
        // Without a command there is the help; everything else looks the same, whoever found it.
        assert!(
            arguments.is_empty() || ended.stderr.starts_with("tack: "),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn options_of_a_side_that_waits_do_not_go_with_a_peer() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let (file, inbox) = (file.to_str().unwrap(), scratch.path().to_str().unwrap());
    let common: [&[&str]; 5] = [
        &["--keep"],
        &["--write-ticket", "ticket"],
        &["--no-code"],
        // Their defaults, too.
        &["--ticket-lifetime", "24h"],
        &["--listen", "127.0.0.1:0"],
    ];
    let of_recv: [&[&str]; 2] = [&["--max-transfers", "16"], &["--max-waiting", "64"]];
    let peers: [&[&str]; 3] = [
        &["127.0.0.1"],
        &["7-guitarist-orca"],
        &["--code", "7-guitarist-orca"],
    ];
    let send = ["send", file];
    let recv = ["recv", "--dir", inbox];
    let sends = common.map(|option| (&send[..], option, "the receiver is given as "));
    let recvs = common.into_iter().chain(of_recv);
    let recvs = recvs.map(|option| (&recv[..], option, "the sender is given as "));
    for (command, option, complaint) in sends.into_iter().chain(recvs) {
        for peer in peers {
            let ended = finish(tack().args(command).args(option).args(peer));
            assert_eq!(ended.code, Some(2), "{option:?}: {ended:?}");
            let said = &ended.stderr;
            assert!(said.starts_with(&format!("tack: {} ", option[0])), "{said}");
            assert!(said.contains(complaint), "{said}");
        }
    }
}

#[test]
fn a_taken_port_and_an_unknown_host_are_network_errors() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().to_str().unwrap();
    let ended = finish(tack().args(["recv", "--dir", dir, "--listen", &address]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains(&address), "{}", ended.stderr);
    let ended = finish(tack().args(["send", dir, "no-such-host.invalid", "--insecure"]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.stderr.contains("no-such-host.invalid"),
        "{}",
        ended.stderr
    );
}
