//! What the store promises, against real files and real processes.

mod claims;
mod files;
mod listing;
mod processes;
mod purge;
mod writes;

mod cases {
    crate::cases::on!(crate::sqlite::fixture::Fixture::new());
}
