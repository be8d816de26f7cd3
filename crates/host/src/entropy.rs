//! The machine's random number generator, as the core asks for it.

use std::io;

use identity_core::{claim::Owner, host::Entropy};

/// The operating system's random number generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy(());

impl OsEntropy {
    /// The operating system's generator.
    pub fn new() -> Self {
        Self(())
    }
}

impl Entropy for OsEntropy {
    fn owner(&self) -> io::Result<Owner> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Owner(u128::from_ne_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_owners_differ() {
        let entropy = OsEntropy::new();
        assert_ne!(entropy.owner().unwrap(), entropy.owner().unwrap());
    }
}
