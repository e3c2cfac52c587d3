//! `tack id` and `tack peers`: what people and scripts see of keys.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Ended, finish, tack};

fn run(state: &Path, arguments: &[&str]) -> Ended {
    finish(tack().args(arguments).arg("--state-dir").arg(state))
}

#[test]
fn an_identity_is_made_at_first_use_and_shown_ever_after() {
    let scratch = tempfile::tempdir().unwrap();
    let state = scratch.path().join("state");
    let first = run(&state, &["id"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let key = first.stdout.trim();
    assert_eq!(key.len(), 56);
    let shown = run(&state, &["id", "show", "--json"]).json();
    assert_eq!(shown["key"], key);
    assert!(key.starts_with(&shown["short"].as_str().unwrap().replace('-', "")));
    // By the environment, too; an option counts more.
    let environment = finish(tack().arg("id").env("TACK_STATE_DIR", &state));
    assert_eq!(environment.stdout.trim(), key);

    let rotated = run(&state, &["id", "rotate", "--json"]).json();
    assert_eq!(rotated["replaces"], key);
    assert_eq!(rotated["rotations"], 1);
    assert_ne!(rotated["key"], key);
    let forgotten = run(&state, &["id", "rotate", "--forget", "--json"]).json();
    assert_eq!(forgotten["rotations"], 0);

    // What is on disk is secret, and is never printed.
    let file = state.join("identity");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let secret = stored["private_key"].as_str().unwrap();
    let last = run(&state, &["id", "--json"]);
    assert!(!last.stdout.contains(secret) && !last.stderr.contains(secret));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(&state, &["id"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("mode 0644"), "{refused:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_identity_is_in_the_configuration_folder_of_the_platform() {
    for (variable, folder) in [("HOME", ".config/tack"), ("XDG_CONFIG_HOME", "tack")] {
        let home = tempfile::tempdir().unwrap();
        let mut command = tack();
        command.arg("id").env_remove("TACK_STATE_DIR");
        command
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", "/nonexistent");
        let made = finish(command.env(variable, home.path()));
        assert_eq!(made.code, Some(0), "{made:?}");
        let file = home.path().join(folder).join("identity");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{variable}");
    }
}

#[test]
fn peers_are_added_listed_renamed_and_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let (state, other) = (scratch.path().join("state"), scratch.path().join("other"));
    let key = run(&other, &["id"]).stdout.trim().to_owned();
    let added = run(
        &state,
        &[
            "peers",
            "add",
            "laptop:",
            &key,
            "--address",
            "192.0.2.1:7777",
        ],
    );
    assert_eq!(added.code, Some(0), "{added:?}");
    let listed = run(&state, &["peers", "--json"]).json();
    assert_eq!(listed["name"], "laptop:");
    assert_eq!(listed["key"], key);
    assert_eq!(listed["addresses"][0], "192.0.2.1:7777");
    let listed = run(&state, &["peers"]);
    assert!(listed.stdout.starts_with("laptop: "), "{listed:?}");

    // The key changed.
    run(&other, &["id", "rotate"]);
    let new = run(&other, &["id"]).stdout.trim().to_owned();
    let refused = run(&state, &["peers", "add", "laptop:", &new]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("impersonates it"), "{refused:?}");
    let typo = run(
        &state,
        &["peers", "add", "desk:", &new.replace(&new[..1], "9")],
    );
    assert_eq!(typo.code, Some(2), "{typo:?}");

    assert_eq!(
        run(&state, &["peers", "rename", "laptop:", "desk"]).code,
        Some(0)
    );
    let unknown = run(&state, &["peers", "remove", "dusk:"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("did you mean desk:"), "{unknown:?}");
    assert_eq!(run(&state, &["peers", "remove", "desk:"]).code, Some(0));
    assert_eq!(run(&state, &["peers"]).stdout, "");
}
