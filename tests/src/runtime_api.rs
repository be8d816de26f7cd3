//! Lambda's runtime API for functions on this machine: hands out invocations, takes their answers.
//!
//! What it speaks is told in <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html> and, for the registration of
//! extensions, <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html>.

use std::{
    collections::{HashMap, VecDeque},
    io::{BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

/// A runtime API, for one function's process.
#[derive(Debug, Clone)]
pub struct RuntimeApi {
    /// What goes into `AWS_LAMBDA_RUNTIME_API`.
    pub address: String,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    all: Mutex<Invocations>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Invocations {
    waiting: VecDeque<Invocation>,
    answers: HashMap<String, Answer>,
    failed_start: Option<Value>,
}

#[derive(Debug)]
struct Invocation {
    id: String,
    payload: String,
    deadline: u64,
}

/// What a function answered: a value, or an error as it reports one.
pub type Answer = Result<Value, Value>;

/// An invocation that was handed in, and may be asked for its answer.
#[derive(Debug)]
pub struct Pending {
    /// Its request ID.
    pub id: String,
    state: Arc<State>,
}

/// A deadline, in Unix milliseconds, that lies this far ahead.
pub fn deadline_in(time: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from((now + time).as_millis()).unwrap()
}

impl RuntimeApi {
    /// Listens on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (connection, state) = (connection.unwrap(), shared.clone());
                std::thread::spawn(move || serve(connection, &state));
            }
        });
        Self { address, state }
    }

    /// Hands in an invocation that has a minute, and waits for its answer.
    pub fn invoke(&self, payload: &str) -> Answer {
        self.send(payload, deadline_in(Duration::from_secs(60)))
            .answer()
    }

    /// Hands in an invocation with this deadline, in Unix milliseconds.
    pub fn send(&self, payload: &str, deadline: u64) -> Pending {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let id = format!("request-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.state
            .all
            .lock()
            .unwrap()
            .waiting
            .push_back(Invocation {
                id: id.clone(),
                payload: payload.to_owned(),
                deadline,
            });
        self.state.changed.notify_all();
        Pending {
            id,
            state: self.state.clone(),
        }
    }

    /// What the function reported instead of starting.
    pub fn failed_start(&self) -> Option<Value> {
        self.state.all.lock().unwrap().failed_start.clone()
    }
}

impl Pending {
    /// Waits for the answer, which is given once.
    pub fn answer(&self) -> Answer {
        let all = self.state.all.lock().unwrap();
        let bound = Duration::from_secs(180);
        let (mut all, waited) = self
            .state
            .changed
            .wait_timeout_while(all, bound, |all| !all.answers.contains_key(&self.id))
            .unwrap();
        assert!(!waited.timed_out(), "no answer to {}", self.id);
        all.answers.remove(&self.id).unwrap()
    }

    /// Whether there is an answer.
    pub fn is_answered(&self) -> bool {
        self.state
            .all
            .lock()
            .unwrap()
            .answers
            .contains_key(&self.id)
    }
}

/// Answers the requests of one connection until it ends.
fn serve(mut connection: TcpStream, state: &State) {
    connection.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    while let Some(request) = Request::read(&mut reader) {
        let steps: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let response = match steps.as_slice() {
            ["2018-06-01", "runtime", "invocation", "next"] => next(state),
            ["2018-06-01", "runtime", "invocation", id, "response"] => {
                answered(state, id, Ok(request.json()))
            }
            ["2018-06-01", "runtime", "invocation", id, "error"] => {
                answered(state, id, Err(request.json()))
            }
            ["2018-06-01", "runtime", "init", "error"] => {
                state.all.lock().unwrap().failed_start = Some(request.json());
                response("202 Accepted", &[], "{}")
            }
            ["2020-01-01", "extension", "register"] => {
                let id = ("Lambda-Extension-Identifier", "extension".to_owned());
                response("200 OK", &[id], "{}")
            }
            // No event ever comes.
            ["2020-01-01", "extension", "event", "next"] => continue,
            other => panic!("a request for {other:?}"),
        };
        if connection.write_all(response.as_bytes()).is_err() {
            return; // the process is gone
        }
    }
}

fn next(state: &State) -> String {
    let all = state.all.lock().unwrap();
    let mut all = state
        .changed
        .wait_while(all, |all| all.waiting.is_empty())
        .unwrap();
    let invocation = all.waiting.pop_front().unwrap();
    let headers = [
        ("Lambda-Runtime-Aws-Request-Id", invocation.id),
        (
            "Lambda-Runtime-Deadline-Ms",
            invocation.deadline.to_string(),
        ),
        (
            "Lambda-Runtime-Invoked-Function-Arn",
            "arn:aws:lambda:eu-central-1:123456789012:function:tests".to_owned(),
        ),
    ];
    response("200 OK", &headers, &invocation.payload)
}

fn answered(state: &State, id: &str, answer: Answer) -> String {
    let mut all = state.all.lock().unwrap();
    all.answers.insert(id.to_owned(), answer);
    state.changed.notify_all();
    response("202 Accepted", &[], "{}")
}

fn response(status: &str, headers: &[(&str, String)], body: &str) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    text + "\r\n" + body
}

/// A request with its whole body.
#[derive(Debug)]
pub struct Request {
    /// Its path, with its query.
    pub path: String,
    /// Its headers, one a line.
    pub headers: Vec<String>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Request {
    /// Reads one whose body's length is told; `None` at the connection's end.
    pub fn read(reader: &mut impl std::io::BufRead) -> Option<Self> {
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            Some(line.trim_end().to_owned())
        };
        let first = line().filter(|line| !line.is_empty())?;
        let path = first.split(' ').nth(1)?.to_owned();
        let headers: Vec<String> =
            std::iter::from_fn(|| line().filter(|line| !line.is_empty())).collect();
        let length = headers.iter().find_map(|header| {
            let (name, value) = header.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        Some(Self {
            path,
            headers,
            body,
        })
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}
