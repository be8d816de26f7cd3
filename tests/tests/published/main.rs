//! What is published, read again: job IDs, and the events of every source.

mod events;
mod vectors;
