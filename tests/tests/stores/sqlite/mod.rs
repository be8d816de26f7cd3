//! The built program on one SQLite file.

mod crashes;
mod fencing;
mod upgrade;
mod workers;
