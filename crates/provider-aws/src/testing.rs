//! For tests: configurations for servers on this machine, what the environment names, and servers that answer by a script.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use aws_config::{Region, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;

use crate::config;

/// Our own times and tries, for a server in the clear.
pub(crate) async fn configuration(url: &str) -> SdkConfig {
    config::loader()
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
        .endpoint_url(url)
        .load()
        .await
}

/// The URL that the environment names. A test without it fails: it must not pass by not running.
#[cfg(feature = "emulators")]
pub(crate) fn emulator(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run `cargo xtask test`, which starts the emulators for these tests, or \
             `cargo xtask emulators up`, which says what to set"
        )
    })
}

/// A name that no other test has used on an emulator, be it in another process.
#[cfg(feature = "emulators")]
pub(crate) fn unused_name(prefix: &str) -> String {
    use std::hash::{BuildHasher as _, RandomState};
    use std::sync::atomic::AtomicU64;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{:x}", RandomState::new().hash_one(number))
}

/// What a server says to one request.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    Answer {
        status: u16,
        /// Headers without the last end of line, or nothing.
        header: &'static str,
        body: String,
        /// Bytes that are promised and do not come.
        missing: usize,
    },
    /// The connection is closed after the request.
    Nothing,
}

impl Says {
    pub(crate) fn answer(status: u16, body: impl Into<String>) -> Self {
        Self::Answer {
            status,
            header: "",
            body: body.into(),
            missing: 0,
        }
    }
}

/// A server that gives these answers in turn, and the last one for ever, and counts them.
pub(crate) fn server(script: Vec<Says>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let number = count.fetch_add(1, Ordering::SeqCst);
            reply(connection.unwrap(), &script[number.min(script.len() - 1)]).unwrap();
        }
    });
    (url, asked)
}

/// As [`server`]; keeps the first line of each request.
pub(crate) fn recording_server(script: Vec<Says>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&requests);
    thread::spawn(move || {
        for (number, connection) in listener.incoming().enumerate() {
            let says = &script[number.min(script.len() - 1)];
            let keep = |line: String| kept.lock().unwrap().push(line);
            converse(connection.unwrap(), says, keep).unwrap();
        }
    });
    (url, requests)
}

/// Reads one request and answers it; the connection is not used again.
pub(crate) fn reply(connection: impl Read + Write, says: &Says) -> io::Result<()> {
    converse(connection, says, |_| ())
}

/// As [`reply`]; tells the request's first line before it answers.
fn converse(
    connection: impl Read + Write,
    says: &Says,
    heard: impl FnOnce(String),
) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    let mut first = String::new();
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    heard(first);
    if let Says::Answer {
        status,
        header,
        body,
        missing,
    } = says
    {
        let header = if header.is_empty() {
            String::new()
        } else {
            format!("{header}\r\n")
        };
        write!(
            reader.into_inner(),
            "HTTP/1.1 {status} Said\r\nConnection: close\r\nContent-Length: {}\r\n{header}\r\n{body}",
            body.len() + missing
        )?;
    }
    Ok(())
}
