//! What the store promises, against a real server.

mod claims;
mod connecting;
mod ledger;
mod proxy;
mod wire;

mod cases {
    crate::cases::on!(crate::postgres::fixture::Fixture::new());
}
