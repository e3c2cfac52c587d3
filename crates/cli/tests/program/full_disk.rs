//! A receiver whose disk is full, or would be.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::getuid;

use crate::resume::{MIB, part, source};
use crate::support::{Ended, Running, finish, noise, tack};

/// Mounts a file system of 8 MiB at `$1`, and runs the rest of the arguments as a command.
const SMALL_DISK: &str = r#"
mount --make-rprivate / &&
mount -t tmpfs -o size=8m,mode=700 tmpfs "$1" && shift && exec "$@"
"#;

/// A receiver that stores on a disk of 8 MiB.
struct Small {
    running: Running,
    address: String,
    /// The directory as the receiver sees it.
    dir: PathBuf,
    _mounted: tempfile::TempDir,
}

impl Small {
    /// `None` where this machine cannot have it, which is said.
    fn start() -> Option<Self> {
        if !getuid().is_root() {
            tack_skip::skipped("mounting takes root");
            return None;
        }
        if let Some(why) = tack_skip::lacks(&["unshare", "mount"]) {
            tack_skip::skipped(why);
            return None;
        }
        let mounted = tempfile::tempdir().unwrap();
        let mut receiving = tack();
        receiving.args(["recv", "--insecure", "--json", "--overwrite", "--listen"]);
        receiving.args(["127.0.0.1:0", "--dir"]).arg(mounted.path());
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", SMALL_DISK, "sh"]);
        command.arg(mounted.path()).arg(receiving.get_program());
        command.args(receiving.get_args()).stdin(Stdio::null());
        let mut running = Running::start(&mut command);
        let address = running.line()["address"].as_str().unwrap().to_owned();
        let root = Path::new("/proc").join(running.pid().to_string());
        let dir = mounted.path().strip_prefix("/").unwrap();
        let dir = root.join("root").join(dir);
        Some(Self {
            running,
            address,
            dir,
            _mounted: mounted,
        })
    }

    fn sending(&self, path: &Path) -> Command {
        let mut command = tack();
        command.args(["send", "--insecure", "--json"]);
        command.arg(path).arg(&self.address);
        command
    }

    fn fill(&self) {
        let mut filler = fs::File::create(self.dir.join("filler")).unwrap();
        while filler.write_all(&[7; 4096]).is_ok() {}
    }

    /// Nothing was stored for want of room.
    fn refused(&self, ended: &Ended) {
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains("no_space"), "{ended:?}");
    }
}

#[test]
fn a_file_that_is_replaced_needs_room_beside_the_old_one() {
    let Some(small) = Small::start() else { return };
    let (_source, path, content) = source(5 * MIB);
    assert_eq!(finish(&mut small.sending(&path)).code, Some(0));
    // Longer, which is known before anything comes, and as long.
    for len in [5 * MIB + 1, 5 * MIB] {
        fs::write(&path, noise(4, len as usize)).unwrap();
        let ended = finish(&mut small.sending(&path));
        small.refused(&ended);
        assert!(ended.stderr.contains("has room for"), "{ended:?}");
        assert!(fs::read(small.dir.join("file")).unwrap() == content);
        assert_eq!(
            fs::read_dir(&small.dir).unwrap().count(),
            1,
            "a part is left"
        );
    }
    // Only its time differs: nothing is written.
    fs::write(&path, &content).unwrap();
    let ended = finish(&mut small.sending(&path));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    drop(small.running);
}

#[test]
fn a_part_that_cannot_be_completed_does_not_fill_the_disk() {
    let Some(mut small) = Small::start() else {
        return;
    };
    let (_source, path, content) = source(6 * MIB);
    let begun = |small: &Small| {
        let sending = Running::start(small.sending(&path).args(["--bwlimit", "20M"]));
        while part(&small.dir) < 2 * MIB {
            std::thread::sleep(Duration::from_millis(5));
        }
        sending
    };
    let sending = begun(&small);
    small.fill();
    small.refused(&sending.wait());
    assert_eq!(part(&small.dir), 0, "the part of this attempt");
    fs::remove_file(small.dir.join("filler")).unwrap();

    // One that was there before stays, and what it holds counts.
    assert_eq!(small.running.line()["event"], "transfer");
    let mut killed = begun(&small);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(small.running.line()["event"], "interrupted");
    small.fill();
    let before = part(&small.dir);
    small.refused(&finish(&mut small.sending(&path)));
    assert_eq!(part(&small.dir), before);
    fs::write(small.dir.join("filler"), noise(5, MIB as usize)).unwrap();
    let ended = finish(&mut small.sending(&path));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(small.dir.join("file")).unwrap() == content);
}
