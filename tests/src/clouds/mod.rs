//! Emulated clouds, and the real handlers beside them, fed as their clouds feed them.

#[cfg(feature = "aws")]
pub mod aws;
