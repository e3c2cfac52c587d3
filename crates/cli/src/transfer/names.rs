//! Names that a peer chose: which may become files here, and how to print the others.

/// Longest file name that Unix file systems keep, bytes.
const MAX_COMPONENT: usize = 255;

use super::protocol::NameRules;

/// The rules of the system that this program runs on.
pub(crate) const RULES: NameRules = NameRules::Unix;

/// Why a name may not become an entry of the receiving directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum BadName {
    #[error("the name is empty")]
    Empty,
    #[error("the name is longer than {MAX_COMPONENT} bytes")]
    TooLong,
    #[error("'.' and '..' are not valid names")]
    Dots,
    #[error("the name contains '/'")]
    Slash,
    #[error("the name contains '\\', which separates directories on Windows")]
    Backslash,
    #[error("the name contains {0:?}, which Windows reserves")]
    Reserved(char),
    #[error("the name is one that Windows reserves for a device")]
    Device,
    #[error("the name ends with a space or a dot, which Windows drops")]
    Ending,
    #[error("the name contains a NUL byte")]
    Nul,
}

/// Accepts exactly what is one plain component on a system with these rules: the protocol sends
/// names one component at a time, so nothing that passes can point out of the directory it is
/// created in.
pub(crate) fn check(name: &[u8], rules: NameRules) -> Result<(), BadName> {
    if name.is_empty() {
        return Err(BadName::Empty);
    }
    if name.len() > MAX_COMPONENT {
        return Err(BadName::TooLong);
    }
    if name == b"." || name == b".." {
        return Err(BadName::Dots);
    }
    for &byte in name {
        match byte {
            b'/' => return Err(BadName::Slash),
            0 => return Err(BadName::Nul),
            _ => {}
        }
    }
    match rules {
        NameRules::Unix => Ok(()),
        NameRules::Windows => check_windows(name),
    }
}

/// Naming Files, Paths, and Namespaces, in Microsoft's documentation of Win32.
fn check_windows(name: &[u8]) -> Result<(), BadName> {
    for &byte in name {
        match byte {
            b'\\' => return Err(BadName::Backslash),
            b'<' | b'>' | b':' | b'"' | b'|' | b'?' | b'*' | 1..=31 => {
                return Err(BadName::Reserved(byte.into()));
            }
            _ => {}
        }
    }
    let stem = name.split(|byte| *byte == b'.').next().unwrap_or(name);
    let stem = stem.trim_ascii_end().to_ascii_uppercase();
    let is_numbered = |prefix: &[u8]| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| matches!(rest, [b'1'..=b'9']))
    };
    if [&b"CON"[..], b"PRN", b"AUX", b"NUL"].contains(&&*stem)
        || is_numbered(b"COM")
        || is_numbered(b"LPT")
    {
        return Err(BadName::Device);
    }
    if name.ends_with(b" ") || name.ends_with(b".") {
        return Err(BadName::Ending);
    }
    Ok(())
}

/// Characters that are not seen, and those that turn the order of what is around them: with them a
/// name can look like another (`exe.txt` for `txt.exe`).
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

/// A peer's text, safe on a terminal: control characters (escape sequences, line breaks) and
/// invisible ones are shown, not obeyed.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_pass() {
        for name in [
            "a",
            "...",
            ".hidden",
            "a b",
            "naïve.txt",
            "C",
            "1:2",
            "ab:c",
            "-rf",
            "a:b",
            "C:",
            "back\\slash",
            "nul",
        ] {
            assert_eq!(check(name.as_bytes(), NameRules::Unix), Ok(()), "{name}");
        }
        assert_eq!(
            check(b"\xff\xfe", NameRules::Unix),
            Ok(()),
            "not UTF-8 is fine on Unix"
        );
        for name in ["a", ".hidden", "a b", "console", "com10"] {
            assert_eq!(check(name.as_bytes(), NameRules::Windows), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        for (name, why) in [
            (&b""[..], BadName::Empty),
            (b".", BadName::Dots),
            (b"..", BadName::Dots),
            (b"/etc/passwd", BadName::Slash),
            (b"../up", BadName::Slash),
            (b"a/b", BadName::Slash),
            (b"a\0b", BadName::Nul),
            (&[b'a'; 256], BadName::TooLong),
        ] {
            for rules in [NameRules::Unix, NameRules::Windows] {
                assert_eq!(check(name, rules), Err(why), "{name:?}");
            }
        }
        for (name, why) in [
            (&b"..\\up"[..], BadName::Backslash),
            (b"\\\\host\\share", BadName::Backslash),
            (b"C:", BadName::Reserved(':')),
            (b"file:stream", BadName::Reserved(':')),
            (b"what?", BadName::Reserved('?')),
            (b"nul", BadName::Device),
            (b"Com1.txt", BadName::Device),
            (b"name.", BadName::Ending),
        ] {
            assert_eq!(check(name, NameRules::Windows), Err(why), "{name:?}");
        }
    }

    #[test]
    fn what_a_peer_says_does_not_control_the_terminal() {
        assert_eq!(
            printable("txt.\u{202e}exe\u{200b}"),
            "txt.\\u{202e}exe\\u{200b}"
        );
        assert_eq!(printable("Grüße 你好.txt"), "Grüße 你好.txt");
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
