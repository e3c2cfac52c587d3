//! The units of systemd in `packaging/systemd`: read by systemd's own tools, and `tack serve` under
//! what they restrict, as far as that can be had without systemd.

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, getuid, kill_process};

use crate::meeting::Side;
use crate::support::{finish, is_long, tack};
use crate::tunnel::{Service, echo, noise, target};

const UNITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");

/// The user of the service.
const NOBODY: u32 = 65534;

/// How much systemd may find to say against the service, in tenths of its scale from 0 to 10. What
/// it finds is the network and its sockets, which are what the service is for.
const EXPOSURE: &str = "--threshold=15";

/// The units with the program that is tested, which is not installed.
fn units() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["tack-serve.service", "tack-serve.socket"] {
        let unit = fs::read_to_string(format!("{UNITS}/{name}")).unwrap();
        let program = tack().get_program().to_str().unwrap().to_owned();
        let unit = unit.replace("/usr/local/bin/tack", &program);
        fs::write(folder.path().join(name), unit).unwrap();
    }
    folder
}

#[test]
fn systemd_understands_the_units_and_finds_them_tight() {
    if let Some(why) = tack_skip::lacks(&["systemd-analyze"]) {
        return tack_skip::skipped(why);
    }
    let folder = units();
    let analyze = |arguments: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        finish(command.args(arguments).current_dir(folder.path()))
    };
    // The manual page is not installed either.
    let verify = [
        "verify",
        "--man=no",
        "./tack-serve.service",
        "./tack-serve.socket",
    ];
    let ended = analyze(&verify);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("tack-serve"), "{ended:?}");
    // Since version 250.
    if !analyze(&["--help"]).stdout.contains("--offline") {
        return tack_skip::skipped("the rating: systemd-analyze is older");
    }
    let security = ["security", "--no-pager", "--offline=yes", EXPOSURE];
    let ended = analyze(&[&security[..], &["./tack-serve.service"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Runs a program as the unit has it: as a user without capabilities and without a way to new ones,
/// with the file system read-only but for its folders, without homes, devices and other processes.
/// `$1` is a folder with `state`, `inbox` and `serve.toml`, `$2` the program.
const SANDBOX: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/state /mnt/inbox
touch /mnt/tack /mnt/serve.toml
mount --bind "$1/state" /mnt/state
mount --bind "$1/inbox" /mnt/inbox
mount --bind "$2" /mnt/tack
mount --bind "$1/serve.toml" /mnt/serve.toml
mkdir /mnt/dev
mount -t tmpfs -o mode=755 tmpfs /mnt/dev
for device in null zero full random urandom tty; do
    touch "/mnt/dev/$device"
    mount --bind "/dev/$device" "/mnt/dev/$device"
done
echo $$ >"$1/pid"
mount --move /mnt/dev /dev
# ProtectSystem=strict: whatever is mounted, but the folders of the service.
awk '{ print $5 }' /proc/self/mountinfo | sort -r | while read -r point; do
    # What is mounted over cannot be seen.
    [ -e "$point" ] || continue
    case $point in
        /mnt/state | /mnt/inbox | /dev | /dev/* | /proc | /proc/*) continue ;;
    esac
    # Another test may remove its network namespace, and with it the mount, at any time.
    mount -o remount,bind,ro "$point" 2>/dev/null || [ ! -e "$point" ] ||
        echo "not read-only: $point" >&2
done
# ProtectHome=yes, PrivateTmp=yes.
for home in /home /root /run/user; do
    [ ! -d "$home" ] || mount -t tmpfs -o ro,mode=000 tmpfs "$home"
done
mount -t tmpfs tmpfs /tmp
# ProtectProc=invisible, ProcSubset=pid, ProtectKernelTunables=yes.
mount -t proc -o hidepid=invisible,subset=pid proc /proc
umask 0077
cd /
LISTEN_PID=$$ LISTEN_FDS=1 exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
    --bounding-set=-all --inh-caps=-all \
    /mnt/tack serve --config /mnt/serve.toml --state-dir /mnt/state --verbose
"#;

/// A program that is not the child of this one, which ends with the test.
struct Traced(Pid);

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn the_service_works_under_what_its_unit_restricts() {
    if !is_long() {
        return;
    }
    if !getuid().is_root() {
        return tack_skip::skipped("only root makes a sandbox like that of the unit");
    }
    if let Some(why) = tack_skip::lacks(&["bash", "unshare", "setpriv", "mount", "strace"]) {
        return tack_skip::skipped(why);
    }
    let target = target(echo).to_string();
    let client = Side::new();
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let own = |name: &str| {
        fs::create_dir(path(name)).unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    };
    own("state");
    own("inbox");
    let config = format!("targets = [\"{target}\"]\n[receive]\ndir = \"/mnt/inbox\"\n");
    fs::write(path("serve.toml"), &config).unwrap();
    fs::set_permissions(path("serve.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    let as_service = |arguments: &[&str]| {
        let mut command = tack();
        let command = command.args(arguments).arg("--state-dir");
        finish(command.arg(path("state")))
    };
    let key = as_service(&["id"]).stdout;
    as_service(&["peers", "add", "client", &client.key()]);
    for entry in walkdir::WalkDir::new(path("state")) {
        let entry = entry.unwrap();
        std::os::unix::fs::chown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    let begin = format!("exec 3<&{}; exec \"$@\"", socket.as_raw_fd());
    let mut command = Command::new("bash");
    command
        .args(["-c", &begin, "bash", "strace", "-f", "-qq", "-o"])
        .arg(path("trace"))
        .args(["unshare", "--mount", "sh", "-c", SANDBOX, "sh"])
        .arg(home.path())
        .arg(tack().get_program())
        .stdin(Stdio::null());
    let mut service = Service::of(command);
    service.line("serving tunnels at ");
    let pid = fs::read_to_string(path("pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    let traced = Traced(pid);
    assert!(!service.said.contains("not read-only"), "{}", service.said);

    let known = ["--address", &address];
    client.run(&[&["peers", "add", "server", key.trim()][..], &known].concat());
    let connect = || client.run(&["connect", "server:", &target]).code;
    assert_eq!(connect(), Some(0));
    fs::write(client.path("photo"), noise(300_000)).unwrap();
    let sent = client.run(&["send", "photo", "server:"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(fs::read(path("inbox/photo")).unwrap() == noise(300_000));
    let other = config.replace(&target, "*:*");
    fs::write(path("serve.toml"), other).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    service.line("was read again");
    assert_eq!(connect(), Some(3), "loopback is not among any hosts");
    kill_process(pid, Signal::TERM).unwrap();
    let status = service.child.wait().unwrap();
    std::mem::forget(traced);
    assert_eq!(status.code(), Some(143), "SuccessExitStatus of the unit");
    check_calls(&fs::read_to_string(path("trace")).unwrap());
}

/// Checks what the service asked of the kernel against what the unit leaves it.
fn check_calls(trace: &str) {
    let began = trace.rfind("execve(\"/mnt/tack\"").unwrap();
    let mut names = BTreeSet::new();
    for line in trace[began..].lines().skip(1) {
        // The number of a thread, and its call.
        let Some((_, call)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, arguments)) = call.trim_start().split_once('(') else {
            continue;
        };
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            continue;
        }
        names.insert(name);
        let families = ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"];
        if name == "socket" {
            let family = arguments.split(',').next().unwrap();
            assert!(
                families.contains(&family),
                "RestrictAddressFamilies: {line}"
            );
        }
        let is_executable = arguments.contains("PROT_WRITE") && arguments.contains("PROT_EXEC");
        assert!(!is_executable, "MemoryDenyWriteExecute: {line}");
        assert!(
            !arguments.contains("CLONE_NEW"),
            "RestrictNamespaces: {line}"
        );
    }
    assert!(
        names.contains("recvmsg") || names.contains("recvmmsg"),
        "{names:?}"
    );
    if let Some(why) = tack_skip::lacks(&["systemd-analyze"]) {
        return tack_skip::skipped(format_args!("SystemCallFilter: {why}"));
    }
    let mut allowed = set("@system-service");
    for excluded in ["@privileged", "@resources"] {
        for name in set(excluded) {
            allowed.remove(&name);
        }
    }
    let refused: Vec<_> = names
        .iter()
        .filter(|name| !allowed.contains(**name))
        .collect();
    assert!(refused.is_empty(), "SystemCallFilter: {refused:?}");
}

/// The system calls of a set of systemd, those of the sets in it included.
fn set(name: &str) -> BTreeSet<String> {
    let mut command = Command::new("systemd-analyze");
    let ended = finish(command.args(["syscall-filter", name]));
    let mut found = BTreeSet::new();
    for line in ended.stdout.lines().skip(1).map(str::trim) {
        if line.starts_with('@') {
            found.extend(set(line));
        } else if !line.is_empty() && !line.starts_with('#') {
            found.insert(line.to_owned());
        }
    }
    found
}
