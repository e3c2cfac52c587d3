//! Names that a peer chose: which may become files here, and how to print the others.

/// Longest file name that Unix file systems keep, bytes.
const MAX_COMPONENT: usize = 255;

/// Why a name may not become an entry of the receiving directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum BadName {
    #[error("the name is empty")]
    Empty,
    #[error("the name is longer than {MAX_COMPONENT} bytes")]
    TooLong,
    #[error("'.' and '..' are no names")]
    Dots,
    #[error("the name contains '/'")]
    Slash,
    #[error("the name contains '\\', which separates directories on Windows")]
    Backslash,
    #[error("the name begins with a Windows drive")]
    Drive,
    #[error("the name contains a NUL byte")]
    Nul,
}

/// Accepts exactly what is one plain component on every system: the protocol sends names one
/// component at a time, so nothing that passes can point out of the directory it is created in.
pub(crate) fn check(name: &[u8]) -> Result<(), BadName> {
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
            b'\\' => return Err(BadName::Backslash),
            0 => return Err(BadName::Nul),
            _ => {}
        }
    }
    if name.len() >= 2 && name[0].is_ascii_alphabetic() && name[1] == b':' {
        return Err(BadName::Drive);
    }
    Ok(())
}

/// A peer's text, safe on a terminal: control characters (escape sequences, line breaks) are shown, not obeyed.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
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
        ] {
            assert_eq!(check(name.as_bytes()), Ok(()), "{name}");
        }
        assert_eq!(check(b"\xff\xfe"), Ok(()), "not UTF-8 is fine on Unix");
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
            (b"..\\up", BadName::Backslash),
            (b"\\\\host\\share", BadName::Backslash),
            (b"C:", BadName::Drive),
            (b"c:evil", BadName::Drive),
            (b"a\0b", BadName::Nul),
            (&[b'a'; 256], BadName::TooLong),
        ] {
            assert_eq!(check(name), Err(why), "{name:?}");
        }
    }

    #[test]
    fn escape_sequences_are_shown() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}
