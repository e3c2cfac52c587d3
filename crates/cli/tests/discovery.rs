//! Two machines on one network find each other by multicast DNS: in network namespaces, which takes
//! root and iproute2.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use support::{Ended, finish, tack};

/// Two network namespaces with a cable between them; gone when dropped.
struct Cable {
    names: [String; 2],
}

impl Cable {
    /// `Err` says why there is none.
    fn new() -> Result<Self, String> {
        let names = ["a", "b"].map(|end| format!("tack-{}-{end}", std::process::id()));
        let cable = Self { names };
        let [a, b] = &cable.names;
        for line in [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add veth0 type veth peer name veth0 netns {b}"),
            format!("-n {a} addr add 10.77.0.1/24 dev veth0"),
            format!("-n {b} addr add 10.77.0.2/24 dev veth0"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
            format!("-n {a} link set veth0 up"),
            format!("-n {b} link set veth0 up"),
        ] {
            let run = Command::new("ip").args(line.split(' ')).output();
            let output = run.map_err(|error| format!("no ip command: {error}"))?;
            if !output.status.success() {
                let words = String::from_utf8_lossy(&output.stderr);
                return Err(format!("ip {line}: {}", words.trim()));
            }
        }
        Ok(cable)
    }

    /// `tack` in one of the two.
    fn tack(&self, end: usize) -> Command {
        let mut command = Command::new("ip");
        let program = tack().get_program().to_owned();
        command
            .args(["netns", "exec", &self.names[end]])
            .arg(program)
            .env_remove("TACK_TICKET")
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip")
                .args(["netns", "delete", name])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Killed when dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_code_finds_the_other_machine_and_a_failed_search_says_what_was_tried() {
    let cable = match Cable::new() {
        Ok(cable) => cable,
        Err(why) => {
            println!("SKIPPED: no network namespaces: {why}");
            return;
        }
    };
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    fs::create_dir(path("inbox")).unwrap();
    fs::write(path("file"), vec![7; 100_000]).unwrap();

    let receiver = cable
        .tack(0)
        .args(["recv", "--once", "--dir"])
        .arg(path("inbox"))
        .arg("--state-dir")
        .arg(path("a"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut receiver = Guard(receiver);
    let mut shown = String::new();
    let mut lines = BufReader::new(receiver.0.stderr.take().unwrap());
    while !shown.contains("tack1") {
        assert!(lines.read_line(&mut shown).unwrap() > 0, "{shown}");
    }
    assert!(
        shown.contains("10.77.0.1:7777") && !shown.contains("0.0.0.0"),
        "{shown}"
    );
    let code = shown
        .lines()
        .find_map(|line| line.split_once("on this network")?.1.split(' ').next_back())
        .unwrap_or_else(|| panic!("no code: {shown}"));

    let send = |target: &str, wait: &str| -> Ended {
        let mut command = cable.tack(1);
        command
            .arg("send")
            .arg(path("file"))
            .args([target, "--wait", wait, "--state-dir"])
            .arg(path("b"));
        finish(&mut command)
    };
    let sent = send(code, "100s");
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(
        fs::read(path("inbox/file")).unwrap(),
        fs::read(path("file")).unwrap()
    );
    assert!(receiver.0.wait().unwrap().success());

    // Nobody waits any more.
    let lost = send("7-guitarist-orca", "1s");
    assert_eq!(lost.code, Some(3), "{lost:?}");
    for words in ["number 7", "10.77.0.2", "multicast DNS", "--code"] {
        assert!(lost.stderr.contains(words), "{words}: {lost:?}");
    }
}
