//! What a receiver does with requests in any order, sensible or not: a peer that was admitted may
//! send them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::channel::Channel;
use super::groups::GROUP;
use super::protocol::{Entry, Hash, Hello, Modified, Request, Taken, data_head};
use super::receiver::admission::Admission;
use super::receiver::committer::Committer;
use super::receiver::existing::Existing;
use super::receiver::holder::Sessions;
use super::receiver::part;
use super::receiver::progress::LiveProgress;
use super::receiver::serve::{Service, serve};
use super::receiver::store::Store;
use super::report::Listing;
use crate::volume::Volume;

/// Names that scripts use: of files that are there, of others, and such as lead out.
const NAMES: [&[u8]; 8] = [b"old", b"a", b"b", b"folder", b"..", b"", b"a/b", b"\xff\n"];
const OLD: &[u8] = b"was here before";
/// A receiver that says nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request, or data.
#[derive(Clone, Debug)]
enum Step {
    KeepAlive,
    Enter(usize),
    Leave,
    File {
        name: usize,
        size: Option<u64>,
        has_names: bool,
        has_hash: bool,
    },
    Same(u64, usize),
    Link(usize, usize),
    Content(u64),
    Data(usize, u8),
    Hole(u64),
    Query(u64, u16),
    Seek(u64),
    /// With the hash of the data since the content began, or with another.
    End(bool),
    Extras,
    Remove(u64),
    Missing,
    LeftOut,
    /// A file from its offer to its end, as senders send it.
    Whole(usize, usize),
    /// Random bytes, which need not be a frame.
    Raw(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    let index = || 0..6_u64;
    let group = || prop_oneof![4 => 0..4_u64, 1 => any::<u64>()];
    let len = || prop_oneof![3 => 0..100_usize, 1 => Just(GROUP as usize)];
    let size = prop_oneof![
        3 => (0..100_u64).prop_map(Some),
        2 => (0..3 * GROUP).prop_map(Some),
        1 => any::<u64>().prop_map(Some),
        1 => Just(None),
    ];
    let file = (name(), size, any::<bool>(), any::<bool>());
    prop_oneof![
        1 => Just(Step::KeepAlive),
        2 => name().prop_map(Step::Enter),
        2 => Just(Step::Leave),
        4 => file.prop_map(|(name, size, has_names, has_hash)| Step::File { name, size, has_names, has_hash }),
        1 => (index(), name()).prop_map(|(first, name)| Step::Same(first, name)),
        1 => (name(), name()).prop_map(|(name, target)| Step::Link(name, target)),
        4 => index().prop_map(Step::Content),
        6 => (len(), any::<u8>()).prop_map(|(len, byte)| Step::Data(len, byte)),
        1 => prop_oneof![0..3 * GROUP, any::<u64>()].prop_map(Step::Hole),
        2 => (group(), any::<u16>()).prop_map(|(first, count)| Step::Query(first, count)),
        2 => group().prop_map(Step::Seek),
        4 => any::<bool>().prop_map(Step::End),
        1 => Just(Step::Extras),
        1 => index().prop_map(Step::Remove),
        1 => Just(Step::Missing),
        1 => Just(Step::LeftOut),
        6 => (name(), len()).prop_map(|(name, len)| Step::Whole(name, len)),
        1 => proptest::collection::vec(any::<u8>(), 0..20).prop_map(Step::Raw),
    ]
}

/// Writes requests as a sender does, and remembers the hashes that it promised.
struct Script {
    bytes: Vec<u8>,
    promised: HashSet<Hash>,
    /// Of the data since the content began.
    hasher: blake3::Hasher,
    /// Entries so far, as both sides count them from 0.
    entries: u64,
}

impl Script {
    fn new(hello: Hello) -> Self {
        let mut bytes = Vec::new();
        Request::Hello(hello).encode(&mut bytes);
        Self {
            bytes,
            promised: HashSet::new(),
            hasher: blake3::Hasher::new(),
            entries: 0,
        }
    }

    fn say(&mut self, request: &Request<'_>) {
        let counts = matches!(
            request,
            Request::Enter(_) | Request::File { .. } | Request::Link(..) | Request::Same { .. }
        );
        self.entries += u64::from(counts);
        request.encode(&mut self.bytes);
    }

    fn data(&mut self, len: usize, byte: u8) {
        self.bytes.extend_from_slice(&data_head(len));
        self.bytes.resize(self.bytes.len() + len, byte);
        self.hasher.update(&vec![byte; len]);
    }

    fn end(&mut self, hash: Hash) {
        self.promised.insert(hash);
        self.say(&Request::End(hash));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::KeepAlive => self.say(&Request::KeepAlive),
            Step::Enter(name) => self.say(&Request::Enter(entry(name, None))),
            Step::Leave => self.say(&Request::Leave),
            Step::File {
                name,
                size,
                has_names,
                has_hash,
            } => {
                self.say(&Request::File {
                    entry: entry(name, size),
                    hash: has_hash.then(|| *blake3::hash(OLD).as_bytes()),
                    has_names,
                });
            }
            Step::Same(first, name) => self.say(&Request::Same {
                first,
                entry: entry(name, Some(1)),
            }),
            Step::Link(name, target) => self.say(&Request::Link(entry(name, None), NAMES[target])),
            Step::Content(index) => {
                self.hasher = blake3::Hasher::new();
                self.say(&Request::Content(index));
            }
            Step::Data(len, byte) => self.data(len.max(1), byte),
            Step::Hole(len) => self.say(&Request::Hole(len)),
            Step::Query(first, count) => self.say(&Request::Query { first, count }),
            Step::Seek(group) => self.say(&Request::Seek(group)),
            Step::End(true) => {
                let hash = self.hasher.finalize();
                self.end(*hash.as_bytes());
            }
            Step::End(false) => self.end([9; 32]),
            Step::Extras => self.say(&Request::Extras),
            Step::Remove(number) => self.say(&Request::Remove(number)),
            Step::Missing => self.say(&Request::Missing {
                path: b"gone",
                message: "it is gone",
            }),
            Step::LeftOut => self.say(&Request::LeftOut {
                count: 1,
                why: "left out",
            }),
            Step::Whole(name, len) => {
                self.step(&Step::File {
                    name,
                    size: Some(len as u64),
                    has_names: false,
                    has_hash: false,
                });
                self.step(&Step::Content(self.entries - 1));
                if len > 0 {
                    self.step(&Step::Data(len, name as u8));
                }
                self.step(&Step::End(true));
            }
            Step::Raw(ref bytes) => self.bytes.extend_from_slice(bytes),
        }
    }
}

fn entry(name: usize, size: Option<u64>) -> Entry<'static> {
    Entry {
        name: NAMES[name],
        mode: 0o644,
        modified: Modified {
            seconds: 1_000_000_000,
            nanos: 0,
        },
        size,
        data: size.unwrap_or(0),
    }
}

/// Plays the script into a receiver of `dir`, and waits for its end.
async fn play(dir: &Path, existing: Existing, script: &[u8]) {
    let service = Arc::new(Service {
        store: Store::open(dir, existing).unwrap(),
        committer: Committer::new(),
        listing: Listing::Files,
        admission: Admission {
            delete: true,
            ..Admission::default()
        },
        sessions: Sessions::default(),
        live: LiveProgress::new(Volume::Quiet, false),
        silence: PATIENCE,
        greeting: PATIENCE,
    });
    let (near, far) = tokio::io::duplex(1 << 16);
    let (mut answers, mut requests) = tokio::io::split(near);
    let (_stop, stopped) = watch::channel(false);
    let (reader, mut writer) = far.into_split();
    let receiving = async {
        // Whatever it makes of the script is right, if it ends.
        let mut showing = service.live.begin();
        let served = serve(reader, &mut writer, &service, stopped, &mut showing).await;
        drop(writer);
        drop(served);
    };
    let sending = async {
        // It may have heard enough.
        let _ = requests.write_all(script).await;
        let _ = requests.shutdown().await;
    };
    let reading = async {
        let _ = tokio::io::copy(&mut answers, &mut tokio::io::sink()).await;
    };
    let all = async { tokio::join!(receiving, sending, reading) };
    tokio::time::timeout(PATIENCE, all)
        .await
        .expect("the receiver ends with its connection");
}

/// The contents of all files below `dir`, except for unfinished parts.
fn files(dir: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() && !part::is_ours(entry.file_name().as_encoded_bytes()) {
            found.push(fs::read(entry.path()).unwrap());
        }
        assert!(!kind.is_fifo() && !kind.is_socket());
    }
}

fn existing() -> impl Strategy<Value = (Existing, Taken)> {
    let own = prop_oneof![
        Just(Existing::Refuse),
        Just(Existing::Skip),
        Just(Existing::Rename),
        Just(Existing::Update),
        Just(Existing::Overwrite),
    ];
    let asked = prop_oneof![
        Just(Taken::AsReceiver),
        Just(Taken::Refuse),
        Just(Taken::Skip),
        Just(Taken::Rename),
        Just(Taken::Update),
        Just(Taken::Overwrite),
    ];
    (own, asked)
}

/// The scripts mean what they say: sensible ones store files.
#[tokio::test]
async fn a_sensible_script_stores_files() {
    let scratch = tempfile::tempdir().unwrap();
    let mut script = Script::new(hello(Taken::AsReceiver, false, false));
    let folder = [Step::Enter(3), Step::Whole(1, GROUP as usize), Step::Leave];
    for step in [Step::Whole(1, 10)].iter().chain(&folder) {
        script.step(step);
    }
    script.say(&Request::Done);
    play(scratch.path(), Existing::Refuse, &script.bytes).await;
    assert_eq!(fs::read(scratch.path().join("a")).unwrap(), [1; 10]);
    let large = fs::read(scratch.path().join("folder/a")).unwrap();
    assert!(large == vec![1; GROUP as usize]);
}

fn hello(taken: Taken, delete: bool, dry_run: bool) -> Hello {
    Hello {
        names: super::names::RULES,
        session: [1; 16],
        returns: 0,
        taken,
        dry_run,
        delete,
        files: u64::MAX,
        bytes: u64::MAX,
    }
}

proptest! {
    /// The receiver ends, and what is in the folder then was there before, or has a hash that the
    /// sender promised. Beside the folder nothing changes.
    #[test]
    fn no_script_brings_a_receiver_down_or_leads_out(
        (own, taken) in existing(),
        delete in any::<bool>(),
        dry_run in proptest::bool::weighted(0.1),
        steps in proptest::collection::vec(step(), 0..40),
        is_done in any::<bool>(),
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("inbox");
        fs::create_dir_all(dir.join("folder")).unwrap();
        fs::write(dir.join("old"), OLD).unwrap();
        fs::write(dir.join("folder/old"), OLD).unwrap();
        fs::write(scratch.path().join("outside"), OLD).unwrap();
        let mut script = Script::new(hello(taken, delete, dry_run));
        for step in &steps {
            script.step(step);
        }
        if is_done {
            script.say(&Request::Done);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(&dir, own, &script.bytes));
        drop(runtime);

        let mut found = Vec::new();
        files(&dir, &mut found);
        for content in &found {
            let hash = *blake3::hash(content).as_bytes();
            prop_assert!(
                content == OLD || script.promised.contains(&hash),
                "{} bytes that nobody promised", content.len()
            );
        }
        let mut beside: Vec<_> = fs::read_dir(scratch.path()).unwrap()
            .map(|entry| entry.unwrap().file_name()).collect();
        beside.sort();
        prop_assert_eq!(beside, ["inbox", "outside"]);
        prop_assert!(fs::read(scratch.path().join("outside")).unwrap() == OLD);
        if dry_run {
            prop_assert_eq!(found.len(), 2);
        }
    }
}
