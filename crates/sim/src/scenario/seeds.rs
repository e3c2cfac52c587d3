//! Ranges of seeds: `7`, `1..10`, `1,5,9..12`.

/// A text that names no seeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no seeds; write a number (7), a range with both ends in it (1..10), or several with commas"
)]
pub struct SeedsError(String);

/// The seeds that `text` names, in its order. Both ends of a range belong to it: `1..10` is ten
/// seeds.
///
/// # Errors
/// [`SeedsError`] when it is not that, or when it names more than a million.
pub fn parse_seeds(text: &str) -> Result<Vec<u64>, SeedsError> {
    const MOST: u64 = 1_000_000;
    let wrong = || SeedsError(text.into());
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (
                number(first)?,
                number(last.strip_prefix('=').unwrap_or(last))?,
            ),
            None => (number(part)?, number(part)?),
        };
        if first > last || last - first >= MOST - seeds.len() as u64 {
            return Err(wrong());
        }
        seeds.extend(first..=last);
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_read_as_people_write_them() {
        assert_eq!(parse_seeds("7"), Ok(vec![7]));
        assert_eq!(parse_seeds("1..3"), Ok(vec![1, 2, 3]));
        assert_eq!(parse_seeds("1..=3,9"), Ok(vec![1, 2, 3, 9]));
        for wrong in ["", "a", "3..1", "1..", "1..99999999999", "1,,2"] {
            assert!(parse_seeds(wrong).is_err(), "{wrong}");
        }
    }
}
