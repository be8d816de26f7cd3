//! What the documents of this repository say is what there is.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod architecture;
mod links;
mod readme;
