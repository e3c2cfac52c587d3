//! Sixteen random bytes that two sides share.

use std::fmt;

use zeroize::Zeroize;

/// The one-time secret of a ticket. Overwritten in memory when dropped; never printed.
#[derive(Clone)]
pub struct Secret([u8; 16]);

impl Secret {
    /// A new random secret.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The secret with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the secret.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
