//! When new tickets and codes take the place of others.

use super::*;

/// A side without addresses, which announces nothing.
fn shared(usage: TicketUse) -> (tempfile::TempDir, Arc<Shared>) {
    let scratch = tempfile::tempdir().unwrap();
    let state = StateDir::at(scratch.path());
    let current_code = CurrentCode::new(None);
    let identity = Identity::generate().unwrap();
    let key = identity.public_key();
    let shared = Shared {
        own: OwnIdentity {
            identity,
            rotations: Vec::new(),
        },
        host: Mutex::new(WaitingHost {
            state: state.clone(),
            invitations: Invitations::new(state.clone(), Intent::Send),
            current_code: Arc::clone(&current_code),
            intent: Intent::Send,
            also: AlsoServes::nothing(),
            tickets_shown: 0,
        }),
        state,
        current_code,
        command: "tack send PATH",
        after: "",
        lifetime: Some(Duration::from_secs(3600)),
        usage,
        write_ticket: Some(scratch.path().join("ticket")),
        shown_ticket: Mutex::default(),
        has_code: true,
        remember: None,
        volume: Volume::Normal,
        whereabouts: Whereabouts::new(key, ([127, 0, 0, 1], 7777).into(), Some(Vec::new())),
        places: Places::new(1),
        look: Notify::new(),
        complaints: AtomicU32::new(0),
    };
    (scratch, Arc::new(shared))
}

/// Tries the code that is waited for, without its words.
fn burn(shared: &Shared) {
    let tried = (0..=u16::MAX).find(|number| shared.current_code.take(*number).is_ok());
    assert!(tried.is_some() && shared.current_code.is_burnt());
}

fn ticket(shared: &Shared) -> (String, ProofMethod) {
    let path = shared.write_ticket.as_ref().unwrap();
    let shown = shared.shown_ticket().unwrap();
    (
        fs::read_to_string(path).unwrap(),
        ProofMethod::Ticket(shown),
    )
}

#[tokio::test(start_paused = true)]
async fn a_code_that_is_not_burnt_is_not_replaced() {
    let (_scratch, shared) = shared(TicketUse::Once);
    shared.new_code().unwrap();
    burn(&shared);
    tokio::spawn(renew(Arc::clone(&shared), false));
    shared.look.notify_one();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // A transfer by ticket is complete, and brings a new code while the burnt one is waited for.
    let (code, _) = shared.new_code().unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let attempt = shared.current_code.take(code.unwrap().number());
    assert!(attempt.is_ok(), "it was shown, and not tried by anybody");
    drop(attempt);
    shared.look.notify_one();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!shared.current_code.is_burnt(), "a new one has followed");
}

#[test]
fn a_ticket_for_many_stays_when_transfers_are_complete() {
    let (_scratch, shared) = shared(TicketUse::Many);
    shared.invite().unwrap();
    let first = ticket(&shared);
    burn(&shared);
    shared.replace(first.1).unwrap();
    assert!(shared.current_code.is_burnt(), "nothing was used up");
    shared.replace(ProofMethod::Code).unwrap();
    assert!(!shared.current_code.is_burnt(), "the code was");
    assert_eq!(ticket(&shared), first);
}

#[test]
fn a_ticket_that_is_used_up_is_replaced_and_one_that_is_not_stays() {
    let (_scratch, shared) = shared(TicketUse::Once);
    shared.invite().unwrap();
    let first = ticket(&shared);
    shared.replace(ProofMethod::Code).unwrap();
    assert_eq!(ticket(&shared), first, "nobody has used it");
    let peer = Identity::generate().unwrap().public_key();
    let completed = shared.host().invitations.complete(first.1, &peer);
    completed.unwrap();
    shared.replace(first.1).unwrap();
    assert_ne!(ticket(&shared), first);
}
