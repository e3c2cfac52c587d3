//! Peers without ticket, code or key: some say nothing, some speak clear text.

use super::{Side, text};
use crate::support;

#[tokio::test]
async fn peers_that_say_nothing_keep_nobody_out() {
    use tack::secure::Identity;
    let (alice, bob) = (Side::new(), Side::new());
    let receiver = alice.receive(&[]);
    let identity = Identity::generate().unwrap();
    let endpoint = tack::Endpoint::builder()
        .identity(identity)
        .build()
        .unwrap();
    // More than there is room for.
    let mut connecting = tokio::task::JoinSet::new();
    for _ in 0..80 {
        let (endpoint, address) = (endpoint.clone(), receiver.address.clone());
        connecting
            .spawn(async move { endpoint.connect(address.as_str()).any_key(b"tack/1").await });
    }
    let silent = connecting.join_all().await;
    assert!(silent.iter().all(Result::is_ok), "{silent:?}");
    let sent = tokio::task::spawn_blocking(move || {
        let sent = bob.run(&["send", text(&bob.file("file", 10)), &receiver.ticket]);
        drop(receiver);
        sent
    });
    let sent = sent.await.unwrap();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(alice.received("file").is_some());
    drop(silent);
}

#[test]
fn clear_text_and_encryption_recognise_each_other_and_never_mix() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 10);
    // Encrypted here, clear text there.
    let clear = support::Receiver::start(&[]);
    let address = clear.address.to_string();
    bob.run(&["peers", "add", "alice", &alice.key(), "--address", &address]);
    let refused = bob.run(&["send", text(&file), "alice:", "--connect-timeout", "30s"]);
    assert!(
        refused.code == Some(1) || refused.code == Some(3),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("clear text"), "{refused:?}");
    // And the other way round.
    let receiver = alice.receive(&[]);
    let refused = bob.run(&["send", "--insecure", text(&file), &receiver.address]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("the other side encrypts"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("--insecure"), "{refused:?}");
    assert!(alice.received("file").is_none());
    let said = receiver.kill();
    assert!(
        said.contains("clear text") && !said.contains("insecure"),
        "{said}"
    );
}
