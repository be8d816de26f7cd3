//! What happens to which request: the plan of a wire, and what it is told of a request.

use std::{fmt, time::Duration};

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Pass,
    /// The server's whole reply is read and thrown away, then the client's connection is closed: what was asked took
    /// place, and the client cannot know.
    DropReply,
    /// The client's connection is closed, and the server never hears of the request: a failure before the commit.
    DropRequest,
    /// The request reaches the server this much later.
    Delay(Duration),
    /// The request waits for [`crate::Wire::release`]; it reaches the server even if its client is gone by then.
    HoldRequest,
    /// The request takes place, and its reply waits for [`crate::Wire::release`].
    HoldReply,
}

/// A request as a plan sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// PostgreSQL: each statement that it executes. Preparing one executes none.
    Sql(Vec<Statement>),
    /// HTTP.
    Http(HttpRequest),
}

/// A statement that PostgreSQL executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its SQL.
    pub sql: String,
    /// The message that its parameters came in, as sent: texts stand in it as they are.
    pub bound: Vec<u8>,
}

/// An HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, …
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// Names as sent, and values, in which U+FFFD stands for what is not UTF-8.
    pub headers: Vec<(String, String)>,
    /// The body, without its chunks' frames. Of gRPC it is at least the first message, with the five bytes before it.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// The value of the first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The operation that it calls, where all are called by one method: what `X-Amz-Target` ends with
    /// (`DynamoDB_20120810.PutItem`), or a path of gRPC (`/google.firestore.v1.Firestore/Commit`).
    fn operation(&self) -> Option<&str> {
        if let Some(target) = self.header("X-Amz-Target") {
            return target.rsplit('.').next();
        }
        let kind = self.header("Content-Type").unwrap_or_default();
        kind.starts_with("application/grpc")
            .then(|| self.target.rsplit('/').next())
            .flatten()
    }
}

/// What the operations of DynamoDB and Firestore that change nothing begin with. A transaction that is begun or rolled
/// back is no change yet, or none any more.
const READING_OPERATIONS: [&str; 11] = [
    "Get",
    "BatchGet",
    "TransactGet",
    "Query",
    "Scan",
    "List", // and Firestore's Listen
    "Describe",
    "Run",
    "Partition",
    "Begin",
    "Rollback",
];

impl Request {
    /// Whether it changes something. SQL: `INSERT`, `UPDATE`, `DELETE`, or the `COMMIT` of a transaction. HTTP: by the operation
    /// of DynamoDB or gRPC, where it calls one, else any method but `GET`, `HEAD` and `OPTIONS`.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Sql(statements) => statements.iter().any(|statement| {
                let word = statement.sql.split_whitespace().next().unwrap_or_default();
                ["INSERT", "UPDATE", "DELETE", "COMMIT"]
                    .iter()
                    .any(|write| word.eq_ignore_ascii_case(write))
            }),
            Self::Http(request) => match request.operation() {
                Some(operation) => !READING_OPERATIONS
                    .iter()
                    .any(|read| operation.starts_with(read)),
                None => !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS"),
            },
        }
    }

    /// Whether it executes SQL that contains `sql`, with a parameter that contains `bound`, which may be empty.
    pub fn executes(&self, sql: &str, bound: &str) -> bool {
        let Self::Sql(statements) = self else {
            return false;
        };
        statements.iter().any(|statement| {
            let mut windows = statement.bound.windows(bound.len().max(1));
            let binds = bound.is_empty() || windows.any(|window| window == bound.as_bytes());
            statement.sql.contains(sql) && binds
        })
    }
}

/// Says of each request what happens to it, in the order in which a wire reads them.
pub struct Plan(Box<dyn FnMut(&Request) -> Fault + Send>);

impl Plan {
    /// Whatever the function says.
    pub fn new(fault: impl FnMut(&Request) -> Fault + Send + 'static) -> Self {
        Self(Box::new(fault))
    }

    /// Nothing happens.
    pub fn none() -> Self {
        Self::new(|_| Fault::Pass)
    }

    /// `fault` strikes every `n`-th request: with 1 each, with 3 the third, sixth, ninth …
    pub fn every(n: u64, fault: Fault) -> Self {
        let mut seen = 0u64;
        Self::new(move |_| {
            seen += 1;
            if seen.is_multiple_of(n) {
                fault
            } else {
                Fault::Pass
            }
        })
    }

    /// `fault` strikes the `n`-th request, counted from 1, and no other.
    pub fn nth(n: u64, fault: Fault) -> Self {
        let mut seen = 0u64;
        Self::new(move |_| {
            seen += 1;
            if seen == n { fault } else { Fault::Pass }
        })
    }

    /// About one request of `of` is struck, by one of `faults`. One seed strikes the same requests every time, as far as
    /// they come in the same order.
    pub fn seeded(seed: u64, of: u64, faults: impl Into<Vec<Fault>>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let faults = faults.into();
        Self::new(move |_| {
            if random.u64(0..of.max(1)) != 0 {
                return Fault::Pass;
            }
            random.choice(&faults).copied().unwrap_or(Fault::Pass)
        })
    }

    /// The same, but only of the requests for which `holds`: the others pass, and are not counted. E.g.
    /// `Plan::every(3, Fault::DropReply).only(Request::is_write)`.
    pub fn only(mut self, holds: impl Fn(&Request) -> bool + Send + 'static) -> Self {
        Self::new(move |request| {
            if holds(request) {
                self.fault(request)
            } else {
                Fault::Pass
            }
        })
    }

    pub(crate) fn fault(&mut self, request: &Request) -> Fault {
        (self.0)(request)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plan(…)")
    }
}
