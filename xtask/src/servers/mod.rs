//! Servers for tests, each on a port of its own, gone with this program however it ends; and `cargo xtask emulators up`,
//! which runs them all for a person to play with.

pub(crate) mod dynalite;
pub(crate) mod moto;
pub(crate) mod postgres;

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::{
    run::{Result, describe, say},
    test::SUITES,
};

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a server, which is `$3` and following, until standard input ends: it ends with whoever holds its other end, also one
/// that is killed. The server is stopped with the signal `$2`, and its folder, `$1`, is removed. A shell starts what runs
/// beside it with some signals ignored until the program sets its own, so one signal may not be enough.
const SUPERVISOR: &str = r#"
folder=$1 signal=$2
shift 2
exec 3<&0
"$@" >"$folder/log" 2>&1 </dev/null &
server=$!
{
    read -r nothing <&3
    while kill "-$signal" $server 2>/dev/null; do sleep 0.1; done
} &
wait $server
: >"$folder/ended"
wait
rm -rf "$folder"
"#;

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Port {
    /// On one that it chooses, and prints on its first line.
    Printed,
    /// On one that it was told.
    Given(u16),
}

/// When a server can be used.
#[derive(Debug)]
pub(crate) enum Ready {
    /// When it has printed its port.
    Printed,
    /// When it answers a GET of this path with this status.
    Http(&'static str, u16),
    /// When this program ends well.
    Program(Command),
}

/// A server that runs as long as this value lives.
#[derive(Debug)]
pub(crate) struct Server {
    /// The port on 127.0.0.1 that it listens on.
    port: u16,
    /// What tests look for in their environment to find it.
    exports: Vec<(&'static str, String)>,
    /// What programs of other people look for. Tests set it where they need it.
    conventions: Vec<(&'static str, String)>,
    supervisor: Child,
    /// The server ends when this does, so also when this program is killed.
    lifeline: Option<ChildStdin>,
}

impl Server {
    /// Starts a server that keeps what it needs in this folder, which is removed with it, and waits until it can be used. It
    /// is stopped with this signal.
    fn start(
        folder: &Path,
        command: &Command,
        signal: &str,
        port: Port,
        mut ready: Ready,
    ) -> Result<Self> {
        let line = describe(command);
        let mut supervisor = Command::new("sh");
        supervisor
            .args(["-c", SUPERVISOR, "sh"])
            .arg(folder)
            .arg(signal)
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(command.get_current_dir().unwrap_or(Path::new("/")))
            // Ctrl-C stops this program, and so its standard input; it need not hear of it twice.
            .process_group(0)
            .stdin(Stdio::piped())
            // It tells how it ended the server; what the server says is in the log.
            .stderr(Stdio::null());
        let mut supervisor = supervisor
            .spawn()
            .map_err(|error| format!("sh: cannot be started: {error}"))?;
        let lifeline = supervisor.stdin.take();
        let mut server = Self {
            port: 0,
            exports: Vec::new(),
            conventions: Vec::new(),
            supervisor,
            lifeline,
        };
        let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let started = Instant::now();
        loop {
            // First, since it may have said something before it ended.
            let has_ended = folder.join("ended").exists();
            server.port = match port {
                Port::Given(port) => port,
                Port::Printed => printed(&log()).unwrap_or(0),
            };
            if server.port != 0 && ready.holds(server.port) {
                say(&format!("\n$ {line} on port {}", server.port));
                return Ok(server);
            }
            if has_ended || started.elapsed() > PATIENCE {
                return Err(format!("{line} did not start; it says:\n{}", log()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Where it listens for HTTP.
    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What tests look for in their environment to find it.
    pub(crate) fn exports(&self) -> &[(&'static str, String)] {
        &self.exports
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Whether or not it can be waited for, it ends.
        let _ = self.supervisor.wait();
    }
}

impl Ready {
    fn holds(&mut self, port: u16) -> bool {
        match self {
            Self::Printed => true,
            Self::Http(path, status) => answer(port, path).is_ok_and(|answer| answer == *status),
            Self::Program(program) => program.status().is_ok_and(|status| status.success()),
        }
    }
}

/// The port on the first line, once the line has ended.
fn printed(log: &str) -> Option<u16> {
    log.split_once('\n')?.0.trim().parse().ok()
}

/// The status of the answer to a GET.
fn answer(port: u16, path: &str) -> io::Result<u16> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(
        connection,
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = [0; 12]; // "HTTP/1.1 200"
    connection.read_exact(&mut head)?;
    let status = head[9..].iter().map(|byte| char::from(*byte));
    let status: String = status.collect();
    status.parse().map_err(io::Error::other)
}

/// A port that was free just now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let address = listener.map_err(|error| format!("there is no free port: {error}"))?;
    Ok(address.port())
}

/// A new folder for a server.
fn folder() -> Result<PathBuf> {
    made(&mut Command::new("mktemp"))
}

/// The folder that this `mktemp` makes. Its path is short: that of a socket in it may have 107 bytes.
fn made(mktemp: &mut Command) -> Result<PathBuf> {
    let made = output(mktemp.args(["-d", "/tmp/firstclaim-server.XXXXXX"]))?;
    Ok(PathBuf::from(
        String::from_utf8_lossy(&made.stdout).trim_end(),
    ))
}

/// Runs a program to its end, which must be a good one, without showing what it says unless it fails.
fn output(command: &mut Command) -> Result<Output> {
    let line = describe(command);
    let output = command
        .output()
        .map_err(|error| format!("{line}: cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{line}: {}\n{said}", output.status))
}

/// Runs every server and says how to reach it, until this program is stopped: what it started then ends, too.
pub(crate) fn up() -> Result<()> {
    let mut servers = Vec::new();
    for suite in &SUITES {
        servers.extend((suite.servers)()?);
    }
    let lines = |of: fn(&Server) -> &[(&'static str, String)]| -> String {
        let all = servers.iter().flat_map(of);
        all.map(|(name, value)| format!("export {name}={value}\n"))
            .collect()
    };
    say(&format!(
        "\n# For every program that uses a cloud's SDK:\n{}# What tests look for. PostgreSQL's is a --store of firstclaim, too.\n{}\
         \nCtrl-C stops them all.",
        lines(|server| &server.conventions),
        lines(|server| &server.exports),
    ));
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of this script's, with nothing to be ready for but its port.
    fn start(folder: &Path, script: &str) -> Result<Server> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Server::start(folder, &command, "KILL", Port::Printed, Ready::Printed)
    }

    #[test]
    fn a_server_is_gone_with_its_folder() {
        let folder = folder().unwrap();
        let script = format!(
            "echo $$ >{}/process; echo 4711; exec sleep 600",
            folder.display()
        );
        let server = start(&folder, &script).unwrap();
        assert_eq!(server.url(), "http://127.0.0.1:4711");
        let process = std::fs::read_to_string(folder.join("process")).unwrap();
        let alive = || {
            let kill = ["-0", process.trim()];
            Command::new("kill")
                .args(kill)
                .output()
                .unwrap()
                .status
                .success()
        };
        assert!(alive());
        drop(server);
        assert!(!alive());
        assert!(!folder.exists());
    }

    #[test]
    fn a_server_that_ends_at_once_is_told_with_what_it_said() {
        let folder = folder().unwrap();
        let said = start(&folder, "echo no such option; exit 3").unwrap_err();
        assert!(said.contains("no such option"), "{said}");
    }

    #[test]
    fn a_port_is_read_once_its_line_has_ended() {
        assert_eq!(printed("47"), None);
        assert_eq!(printed("4711\nready"), Some(4711));
        assert_eq!(printed("ready\n4711\n"), None);
    }
}
