//! The promise, shown: a model checker drives the shipped state machine through every order of events that its bounds
//! allow, and a simulation drives the real gate through schedules that one seed each decides.

pub mod model;
pub mod simulation;
