//! Codes that this side has used, and whom it met with them. A code permits one meeting, and the
//! same command has to go on where it was after it was killed: the waiting side lets the key that
//! proved the code come back, and this side knows from here whom to come back to.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tack_pairing::{Code, PublicKey};

use crate::exit::Failure;
use crate::state::StateDir;

const FILE: &str = "used-codes.json";
const VERSION: u32 = 1;
/// Codes that are kept at most: the oldest go.
const MAX: usize = 64;
/// As long as the waiting side lets a key come back.
const KEPT: Duration = Duration::from_secs(24 * 3600);

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    codes: Vec<Used>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Used {
    /// BLAKE3 of the text, so that a spent code is not read by chance.
    code: String,
    /// The key that the code led to.
    key: String,
    address: SocketAddr,
    /// Seconds since 1970.
    until: u64,
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn hash(code: &Code) -> String {
    blake3::hash(code.text().as_bytes()).to_hex().to_string()
}

/// A file that cannot be read is as good as none: it only spares people a new code.
fn load(state: &StateDir) -> Stored {
    let bytes = state.read(FILE).ok().flatten();
    bytes
        .and_then(|bytes| serde_json::from_slice::<Stored>(&bytes).ok())
        .filter(|stored| stored.version == VERSION)
        .unwrap_or_default()
}

/// Stores the key that `code` led to.
pub(super) fn note(
    state: &StateDir,
    code: &Code,
    key: &PublicKey,
    address: SocketAddr,
) -> Result<(), Failure> {
    let _lock = state.lock()?;
    let mut stored = load(state);
    let (code, now) = (hash(code), now());
    stored.version = VERSION;
    stored
        .codes
        .retain(|used| used.until > now && used.code != code);
    let extra = (stored.codes.len() + 1).saturating_sub(MAX);
    stored.codes.drain(..extra);
    stored.codes.push(Used {
        code,
        key: key.to_string(),
        address,
        until: now.saturating_add(KEPT.as_secs()),
    });
    let bytes = serde_json::to_vec_pretty(&stored)
        .map_err(|error| Failure::failed("cannot write the used codes", error))?;
    state.write(FILE, &bytes)
}

/// The key that `code` led to, and its address.
pub(super) fn find(state: &StateDir, code: &Code) -> Option<(PublicKey, SocketAddr)> {
    let (code, now) = (hash(code), now());
    let used = load(state).codes.into_iter();
    let used = used
        .rev()
        .find(|used| used.code == code && used.until > now)?;
    Some((used.key.parse().ok()?, used.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_leads_back_to_whom_it_led() {
        let scratch = tempfile::tempdir().unwrap();
        let state = StateDir::at(scratch.path());
        let code = |text: &str| text.parse::<Code>().unwrap();
        let address = "192.0.2.1:7777".parse().unwrap();
        let first = code("7-guitarist-orca");
        assert!(find(&state, &first).is_none());
        note(&state, &first, &PublicKey::from([5; 32]), address).unwrap();
        // The same again, with another key: the latest counts.
        note(&state, &first, &PublicKey::from([6; 32]), address).unwrap();
        assert_eq!(
            find(&state, &first),
            Some((PublicKey::from([6; 32]), address))
        );
        assert!(find(&state, &code("7-guitarist-tiger")).is_none());
        let written = std::fs::read_to_string(scratch.path().join(FILE)).unwrap();
        assert!(!written.contains("orca"), "{written}");
        for n in 1..=99_u16 {
            let other = code(&format!("{n}-guitarist-tiger"));
            note(&state, &other, &PublicKey::from([7; 32]), address).unwrap();
        }
        assert_eq!(load(&state).codes.len(), MAX);
        assert!(find(&state, &first).is_none(), "the oldest are forgotten");
        // What is damaged is as good as none.
        state.write(FILE, b"{").unwrap();
        assert!(find(&state, &first).is_none());
    }
}
