//! `tack id`.

use serde::Serialize;

use super::args::{IdAction, IdArgs};
use super::store::OwnIdentity;
use crate::exit::{Exit, Failure};
use crate::printer::with_stdout;

#[derive(Serialize)]
struct IdEvent {
    event: &'static str,
    key: String,
    short: String,
    /// The key that was replaced, after `rotate`.
    replaces: Option<String>,
    /// Number of earlier keys that lead to this one.
    rotations: usize,
    state_dir: String,
}

/// Shows or rotates the identity.
pub(crate) fn id(args: &IdArgs) -> Result<Exit, Failure> {
    let state = args.state.open()?;
    let (own, replaced) = match args.action.unwrap_or(IdAction::Show) {
        IdAction::Show => (OwnIdentity::load_or_make(&state)?.0, None),
        IdAction::Rotate { forget } => {
            let (old, own) = OwnIdentity::rotate(&state, forget)?;
            (own, Some((old, forget)))
        }
    };
    let key = own.identity.public_key();
    let shown = IdEvent {
        event: "id",
        key: key.to_string(),
        short: tack_pairing::short(&key),
        replaces: replaced.map(|(old, _)| old.to_string()),
        rotations: own.rotations.len(),
        state_dir: state.path().display().to_string(),
    };
    with_stdout(|out| {
        if args.json {
            serde_json::to_writer(&mut *out, &shown)?;
            return writeln!(out);
        }
        writeln!(out, "{}", shown.key)
    })?;
    if !args.json {
        eprintln!("short form, to compare by eye or voice: {}", shown.short);
        match replaced {
            Some((old, false)) => eprintln!(
                "it replaces {}, which signed it: peers that know that one accept it when they meet this installation",
                tack_pairing::short(&old)
            ),
            Some((old, true)) => eprintln!(
                "it replaces {}, which did not sign it: peers have to pair again. The old key still opens what others \
                 grant it until they run `tack peers remove`",
                tack_pairing::short(&old)
            ),
            None => {}
        }
    }
    Ok(Exit::Done)
}
