//! Names beside a taken one (`--rename`).

/// How many names beside a taken one are tried.
pub(super) const MOST_BESIDE: u32 = 10_000;

/// `name.1.txt` for `name.txt`, within the longest name that file systems keep.
pub(super) fn beside(name: &[u8], number: u32) -> Vec<u8> {
    let dot = name.iter().rposition(|byte| *byte == b'.');
    // A name that begins with its only dot has no ending; neither has one with a very long one.
    let dot = dot.filter(|dot| (1..name.len()).contains(dot) && name.len() - dot <= 16);
    let (stem, ending) = name.split_at(dot.unwrap_or(name.len()));
    let number = format!(".{number}");
    let room = 255 - number.len() - ending.len();
    let mut len = stem.len().min(room);
    // Not within a character of UTF-8.
    while len > 0 && stem.get(len).is_some_and(|byte| byte & 0xc0 == 0x80) {
        len -= 1;
    }
    [&stem[..len], number.as_bytes(), ending].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_a_taken_one_keeps_its_ending_and_fits() {
        for (name, wanted) in [
            (&b"a.txt"[..], &b"a.1.txt"[..]),
            (b"a", b"a.1"),
            (b".hidden", b".hidden.1"),
            (b"a.tar.gz", b"a.tar.1.gz"),
        ] {
            assert_eq!(beside(name, 1), wanted);
        }
        let long = "\u{e9}".repeat(127) + "x";
        let other = beside(long.as_bytes(), 10_000);
        assert!(other.len() <= 255);
        assert!(std::str::from_utf8(&other).is_ok(), "{other:?}");
    }
}
