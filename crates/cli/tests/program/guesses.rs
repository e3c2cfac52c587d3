//! Guesses at codes and tickets over many connections at once.

use tack_pairing::{Secret, Ticket};

use crate::meeting::Side;
use crate::support::invitation::Waiting;
use crate::support::{Ended, finish};

#[test]
fn guesses_are_bounded_whatever_the_number_of_connections() {
    let (alice, bob) = (Side::new(), Side::new());
    let arguments = ["recv", "--dir", "inbox", "--listen", "127.0.0.1:0"];
    let (receiver, invitation) = Waiting::start(&mut alice.command(&arguments));
    let file = bob.path("file");
    std::fs::write(&file, "content").unwrap();
    let file = file.to_str().unwrap();
    // Codes with the right number, and tickets of the right key.
    let number = invitation.code.split('-').next().unwrap();
    let words = ["tobacco-tiger", "hurricane-tiger", "goldfish-orca"];
    let words: Vec<_> = words
        .into_iter()
        .filter(|words| !invitation.code.ends_with(words))
        .collect();
    let right: Ticket = invitation.ticket.parse().unwrap();
    let guess = |nth: usize| {
        if nth.is_multiple_of(4) {
            let secret = Secret::from_bytes([nth as u8; 16]);
            let addresses = right.addresses().iter().copied();
            let wrong = Ticket::new(right.issuer, secret, 0, addresses);
            finish(&mut bob.command(&["send", file, &wrong.text()]))
        } else {
            let code = format!("{number}-{}", words[nth % words.len()]);
            finish(&mut bob.command(&["send", file, &invitation.address, "--code", &code]))
        }
    };
    let refused: Vec<Ended> = std::thread::scope(|scope| {
        let guess = &guess;
        let guessing: Vec<_> = (0..24).map(|nth| scope.spawn(move || guess(nth))).collect();
        let ended = guessing.into_iter().map(|guess| guess.join().unwrap());
        ended.collect()
    });
    assert!(
        refused.iter().all(|ended| ended.code != Some(0)),
        "{refused:?}"
    );
    // One was compared with the code; those that came meanwhile or later were not.
    let compared = refused
        .iter()
        .filter(|ended| ended.stderr.contains("mistyped, or somebody"));
    assert_eq!(compared.count(), 1, "{refused:?}");
    let unknown = refused
        .iter()
        .filter(|ended| ended.stderr.contains("ticket"));
    assert!(unknown.count() >= 6, "{refused:?}");
    let late = [
        "send",
        file,
        &invitation.address,
        "--code",
        &invitation.code,
    ];
    let late = bob.run(&late);
    assert_eq!(late.code, Some(1), "{late:?}");
    let sent = bob.run(&["send", file, &invitation.ticket]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let said = receiver.kill();
    assert_eq!(said.matches("the code is used up").count(), 1, "{said}");
}
