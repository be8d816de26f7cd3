//! The claim protocol proven: a simulation of the gate.

pub mod simulation;
