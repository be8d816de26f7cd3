//! The built program on one SQLite file.

mod crashes;
mod fencing;
mod workers;
