//! PostgreSQL servers for tests: thrown up in a folder of their own on a free port, gone with this program however it ends.

use std::{
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::run::{Result, say};

const INSTALL: &str = "the checks need a PostgreSQL server (Debian: apt-get install postgresql)";

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the server, which is `$2` and following, until standard input ends: it ends with whoever holds its other end, also
/// one that is killed. The server is stopped in the way that waits for no client, and its folder, `$1`, is removed. A shell
/// starts what runs beside it with some signals ignored until the program sets its own, so one signal may not be enough.
const SUPERVISOR: &str = r#"
trap : INT TERM HUP
folder=$1
shift
"$@" >"$folder/log" 2>&1 </dev/null &
read -r nothing
while kill -QUIT $! 2>/dev/null; do sleep 0.1; done
rm -rf "$folder"
"#;

/// Whether the server has a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tls {
    /// It has one, made by itself, for 127.0.0.1.
    On,
    /// It knows no secure connections.
    Off,
}

/// Whether the server waits until what it writes is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// It does, as servers do whose data is to last.
    Waited,
    /// It does not: nothing outlives the tests.
    Ignored,
}

impl Disk {
    fn fsync(self) -> &'static str {
        match self {
            Self::Waited => "on",
            Self::Ignored => "off",
        }
    }
}

/// A server that runs as long as this value lives.
#[derive(Debug)]
pub(crate) struct Server {
    /// Whoever is let in without a password and may do everything.
    pub(crate) url: String,
    /// The certificate in PEM, where there is one.
    pub(crate) certificate: PathBuf,
    supervisor: Child,
    lifeline: Option<ChildStdin>,
}

impl Server {
    /// Starts a server with nothing in it, and waits until it lets clients in.
    pub(crate) fn start(tls: Tls, disk: Disk) -> Result<Self> {
        let programs = programs()?;
        let folder = folder()?;
        match Self::start_in(&folder, &programs, tls, disk) {
            Ok(server) => Ok(server),
            Err(what) => {
                // If it cannot be removed, it is a temporary folder, and the reason before is the one to tell.
                let _ = std::fs::remove_dir_all(&folder);
                Err(what)
            }
        }
    }

    fn start_in(folder: &Path, programs: &Path, tls: Tls, disk: Disk) -> Result<Self> {
        let data = folder.join("data");
        let initdb = [
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
        ];
        let mut command = as_server_user(&programs.join("initdb"));
        output(command.args(initdb).arg(&data))?;
        let certificate = folder.join("server.crt");
        let port = free_port().map_err(|error| format!("there is no free port: {error}"))?;
        let mut server = as_server_user(&programs.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(folder);
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "max_connections=300".to_owned(),
            format!("fsync={}", disk.fsync()),
        ];
        if tls == Tls::On {
            self_signed(folder, &certificate)?;
            settings.push("ssl=on".to_owned());
            settings.push(format!("ssl_cert_file={}", certificate.display()));
            settings.push(format!(
                "ssl_key_file={}",
                folder.join("server.key").display()
            ));
        }
        for setting in settings {
            server.args(["-c", &setting]);
        }
        say(&format!(
            "\n$ {} on port {port}",
            programs.join("postgres").display()
        ));
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "sh"])
            .arg(folder)
            .arg(server.get_program())
            .args(server.get_args())
            .current_dir("/")
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| format!("sh: cannot be started: {error}"))?;
        let lifeline = supervisor.stdin.take();
        let server = Self {
            url: format!("postgres://postgres@127.0.0.1:{port}/postgres"),
            certificate,
            supervisor,
            lifeline,
        };
        let mut ready = Command::new(programs.join("pg_isready"));
        ready.args(["--quiet", "--host=127.0.0.1", &format!("--port={port}")]);
        let started = Instant::now();
        while !ready.status().is_ok_and(|status| status.success()) {
            if started.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!(
                    "the PostgreSQL server did not start; its log:\n{log}"
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Whether or not it can be waited for, it ends.
        let _ = self.supervisor.wait();
    }
}

/// The folder of the server's programs: the first one on `PATH` that has them, or where Debian keeps them, the newest.
fn programs() -> Result<PathBuf> {
    let mut folders: Vec<_> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let version = |folder: &Path| -> u32 {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.parse().ok()).unwrap_or(0)
    };
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    versions.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    folders.extend(versions.into_iter().map(|folder| folder.join("bin")));
    let needed = ["initdb", "postgres", "pg_isready"];
    folders
        .into_iter()
        .find(|folder| needed.iter().all(|name| folder.join(name).is_file()))
        .ok_or_else(|| {
            format!(
                "neither PATH nor /usr/lib/postgresql has {}\n{INSTALL}",
                needed.join(", ")
            )
        })
}

/// A program as the server's user: the server refuses to run as root, and then it is `postgres`, which its package makes.
fn as_server_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--init-groups"])
        .arg(program)
        .current_dir("/");
    command
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n")
}

/// A new folder of the server's user. Its path is short: that of the socket in it may have 107 bytes.
fn folder() -> Result<PathBuf> {
    let made =
        output(as_server_user(Path::new("mktemp")).args(["-d", "/tmp/firstclaim-pg.XXXXXX"]))?;
    Ok(PathBuf::from(
        String::from_utf8_lossy(&made.stdout).trim_end(),
    ))
}

/// A port that was free just now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Makes `server.key` and the certificate. It signs nothing but itself, so that clients can take it for their root.
fn self_signed(folder: &Path, certificate: &Path) -> Result<()> {
    let request = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=firstclaim tests",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
    ];
    let mut command = as_server_user(Path::new("openssl"));
    command.args(request).arg(folder.join("server.key"));
    output(command.arg("-out").arg(certificate))
        .map(|_| ())
        .map_err(|what| {
            format!("{what}\nthe checks need openssl (Debian: apt-get install openssl)")
        })
}

/// Runs a program to its end, which must be a good one, without showing what it says unless it fails.
fn output(command: &mut Command) -> Result<Output> {
    let line = crate::run::describe(command);
    let output = command
        .output()
        .map_err(|error| format!("{line}: cannot be started: {error}\n{INSTALL}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{line}: {}\n{said}", output.status))
}
