//! The promise of the claim protocol, shown: a model checker drives the shipped state machine through every order of
//! events that its bounds allow.

pub mod model;
