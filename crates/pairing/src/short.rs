//! Keys as people compare them.

use tack::secure::PublicKey;

/// The first 80 bits of a key in four groups of four characters. Finding a second key with the same
/// ones takes about 2^80 attempts.
pub fn short(key: &PublicKey) -> String {
    let text = key.to_string();
    format!(
        "{}-{}-{}-{}",
        &text[..4],
        &text[4..8],
        &text[8..12],
        &text[12..16]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_the_beginning_of_the_key() {
        let key = crate::testing::identity(7).public_key();
        let short = short(&key);
        assert_eq!(short.len(), 19);
        assert!(key.to_string().starts_with(&short.replace('-', "")));
    }
}
