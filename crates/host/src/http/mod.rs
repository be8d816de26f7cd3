//! Deliveries by HTTP, for the handlers that are web servers: [`intake`] settles what a request brings in a task of its own,
//! [`request`] reads requests and no more of them than fits, [`push`] is the endpoint whose answer is one status, and [`server`]
//! serves it all until the process is told to end.

pub mod intake;
pub mod push;
pub mod request;
pub mod server;
#[cfg(test)]
mod tests;
